// Network families as records: everything the program has to know of a kind of network. Adding one is one
// file with its record, one line in family.cpp, one test (docs/adding_a_network.md).
#pragma once

#include <functional>

#include "aha/base/options.h"
#include "aha/networks/network.h"
#include "aha/weights/names.h"

namespace aha {

// One named size of a family.
struct Architecture {
  std::string name;  // "vit_b_16"
  std::string kind;  // classifier, encoder
  std::string summary;
  nlohmann::json
      config;  // every key; what the shapes of the weights do not say comes with the weights' source
};

// One row: weights whose architecture begins with `prefix`, from `source` (empty = any), at `size` (0 = any)
// are evaluated so. First fit wins.
struct InputRecipe {
  std::string_view prefix, source;
  int size;
  ResizeRule rule;
  int resize;  // 0 = the size itself
  Filter filter;
  bool crop;
  bool half;  // mean = std = 0.5 instead of ImageNet's
};

struct NetworkFamily {
  std::string name;       // "vit": the architecture on a card
  std::string described;  // "vision transformer", in messages
  std::vector<Architecture> sizes;
  std::vector<std::string> free_keys;  // of the config: public weights of one architecture may differ in them
  std::vector<InputRecipe> recipes;
  std::vector<Dialect> dialects;  // names of public checkpoints (weights/names_rules.h)
  // `known`: the config of the architecture that the user named, for what weights do not show.
  std::function<nlohmann::json(const CanonicalWeights& weights, const nlohmann::json& known)>
      config_from_weights;
  std::function<std::shared_ptr<Network>(const nlohmann::json& config, const std::string& where)>
      make;  // its weights zero or random
  // "key=value:key=value" applied to a config.
  std::function<nlohmann::json(const nlohmann::json& config, const std::string& changes,
                               const std::string& where)>
      changed;
};

// The size of axis `which` of a tensor with `rank` axes; another rank is an input error.
int axis_of(const TensorTable& table, const std::string& name, size_t rank, size_t which);

template <class Config>
Config config_from_json(const nlohmann::json& json, const std::string& where) {
  Config config;
  set_all_from_json(fields(config), json, where);
  return config;
}
template <class Config>
nlohmann::json json_from_config(Config config) {
  return json_from_fields(fields(config));
}

// One size of a family, from the Config of its networks.
template <class Config>
Architecture classifier_of(std::string name, std::string summary, const Config& config) {
  return {std::move(name), "classifier", std::move(summary), json_from_config(config)};
}
template <class Config>
Architecture encoder_of(std::string name, std::string summary, const Config& config) {
  return {std::move(name), "encoder", std::move(summary), json_from_config(config)};
}

// make and changed of a family whose networks are Holder(Config).
template <class Holder, class Config>
void use_network(NetworkFamily& family) {
  family.make = [](const nlohmann::json& json, const std::string& where) -> std::shared_ptr<Network> {
    return Holder(config_from_json<Config>(json, where)).ptr();
  };
  family.changed = [](const nlohmann::json& json, const std::string& changes, const std::string& where) {
    auto config = config_from_json<Config>(json, where);
    set_all_from_spec(fields(config), changes, where);
    return json_from_config(config);
  };
}

// The visible list, and one record by name.
const std::vector<NetworkFamily>& network_families();
const NetworkFamily& family_named(const std::string& name, const std::string& where);

// Every named size, and its family.
std::vector<Architecture> architectures();
const Architecture& architecture_named(const std::string& name);
const NetworkFamily& family_of(const Architecture& architecture);

// A file of any known family with the names of any source, as canonical weights.
CanonicalWeights canonical_weights(const TensorTable& table);
const NetworkFamily& family_of(const CanonicalWeights& weights);

// The config of these weights as an `architecture`, or in `why` what speaks against it.
nlohmann::json config_as(const Architecture& architecture, const CanonicalWeights& weights, std::string& why);

// Which known architecture these weights are; null where none fits. Number of classes and input size are
// free.
const Architecture* fitting_architecture(const CanonicalWeights& weights);

// The evaluation recipe of public weights of this architecture from this source ("timm", "torchvision",
// "huggingface", ...).
InputSpec default_input(const Architecture& architecture, const std::string& source, int image_size);

// The records, each in its own file.
NetworkFamily vit_family();
NetworkFamily convnext_family();
NetworkFamily resnet_family();
NetworkFamily hiera_family();

}  // namespace aha
