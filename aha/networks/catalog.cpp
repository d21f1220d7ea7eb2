#include "aha/networks/catalog.h"

#include <algorithm>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/imagenet_classes.h"
#include "aha/base/log.h"
#include "aha/base/shipped.h"
#include "aha/base/time_spent.h"
#include "aha/networks/network_classifier.h"
#include "aha/networks/onnx.h"
#include "aha/networks/public_models.h"
#include "aha/networks/torchscript.h"
#include "aha/networks/weight_summary.h"
#include "aha/nn/module_state.h"
#include "aha/weights/read_weights.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

LoadedNetwork load_public(const Architecture& architecture, const std::string& file) {
  if (script_summary(file))
    throw input_error("{}: expected weights for {}, found a TorchScript file; give it as script:{}", file,
                      architecture.name, file);
  const auto weights = canonical_weights(read_weights(file));
  std::string why;
  const auto config = config_as(architecture, weights, why);
  if (!why.empty()) {
    const auto* fitting = fitting_architecture(weights);
    throw input_error("{} does not fit {}: {}{}", file, architecture.name, why,
                      fitting ? "; it fits " + fitting->name : "");
  }
  LoadedNetwork loaded;
  loaded.kind = architecture.kind;
  loaded.network = family_of(architecture).make(config, file);
  loaded.network->load_weights(weights.table);
  auto& info = loaded.info;
  info.name = architecture.name + ":" + file;
  info.architecture = architecture.name;
  info.sha256 = sha256_of_file(file);
  // A DINOv2 table was made at 518 pixels, but the network is used at 224.
  info.input = default_input(architecture, weights.source,
                             loaded.kind == "encoder" ? 224 : loaded.network->image_size());
  if (loaded.network->classes() == 1000) info.class_names = imagenet_class_names();
  return loaded;
}

LoadedNetwork load_directory(const std::string& name, const std::string& directory) {
  const auto card = read_card(directory);
  const auto where = (fs::path(directory) / "model.json").string();
  if (card.kind == "explainer")
    throw input_error("{}: expected a classifier or an encoder, found an explainer", where);
  LoadedNetwork loaded;
  loaded.kind = card.kind;
  loaded.network = family_named(card.architecture, where).make(card.network, where + ": network");
  loaded.network->load_weights(read_model_weights(directory, card));
  auto& info = loaded.info;
  info.name = name;
  info.architecture = card.architecture;
  info.sha256 = card.sha256;
  info.input = card.input;
  info.mean_color = card.mean_color;
  info.masked_training = masked_training(card);
  info.class_names = card.classes;
  if (!card.classes.empty() && static_cast<int>(card.classes.size()) != loaded.network->classes())
    throw input_error("{}: expected {} class names, found {}", where, loaded.network->classes(),
                      card.classes.size());
  return loaded;
}

}  // namespace

std::optional<std::string> model_directory(const std::string& spec) {
  if (fs::is_regular_file(fs::path(spec) / "model.json")) return spec;
  const bool plain_name = !spec.empty() && spec.find('/') == std::string::npos && spec != "." && spec != "..";
  if (!plain_name) return std::nullopt;
  for (const auto& folder : {bundled_models_folder(), fetched_models_folder()})
    if (!folder.empty() && fs::is_regular_file(fs::path(folder) / spec / "model.json"))
      return (fs::path(folder) / spec).string();
  return std::nullopt;
}

Error unknown_model_error(const std::string& spec) {
  if (fs::is_regular_file(spec)) {
    std::string fitting;
    try {
      fitting = summarize_weights(spec).architecture;
    } catch (const Error& error) {
      return error;
    }
    return fitting.empty()
               ? input_error(
                     "{}: a weight file needs its architecture in front, as in vit_b_16:{}; "
                     "none that is known fits this one",
                     spec, spec)
               : input_error("{}: a weight file needs its architecture in front; this one fits {}:{}", spec,
                             fitting, spec);
  }
  if (fs::is_directory(spec))
    return input_error("{}: expected a model directory, found no model.json in it", spec);
  for (const auto& model : public_models())
    if (model.name == spec)
      return input_error("{0} is not on this machine: `aha get {0}` brings it ({1})", spec, model.summary);
  std::vector<std::string> available;
  for (const auto& model : bundled_models()) available.push_back(model.name);
  for (const char* form : {"a model directory", "ARCHITECTURE:FILE", "onnx:FILE.onnx", "script:FILE.pt"})
    available.emplace_back(form);
  return unknown_name_error("model", spec, available);
}

LoadedNetwork load_network(const std::string& spec) {
  const TimeSpent time("reading weights");
  if (const auto directory = model_directory(spec)) return load_directory(spec, *directory);
  const auto colon = spec.find(':');
  if (colon == std::string::npos) throw unknown_model_error(spec);
  return load_public(architecture_named(spec.substr(0, colon)), spec.substr(colon + 1));
}

std::string bundled_models_folder() {
  return find_shipped({"AHA_MODELS", "models", "models", "cifar10-convnext/model.json"});
}

std::vector<BundledModel> models_in(const std::string& folder) {
  std::vector<BundledModel> models;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!fs::is_regular_file(entry.path() / "model.json")) continue;
    try {
      models.push_back(
          {entry.path().filename().string(), entry.path().string(), read_card(entry.path().string())});
    } catch (const Error& broken) {
      spdlog::warn("{}", broken.what());
    }
  }
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return models;
}

std::vector<BundledModel> bundled_models() {
  return models_in(bundled_models_folder());
}

std::unique_ptr<Classifier> classifier_from_network(std::shared_ptr<Network> network, ClassifierInfo info,
                                                    const Context& context) {
  if (const auto refusal = network->size_refusal(info.input.size); !refusal.empty())
    throw input_error("{}: expected an input size that is {}, found {}", info.name, refusal, info.input.size);
  const TimeSpent time("packing weights");
  network->module().to(torch_device(context));
  return std::make_unique<NetworkClassifier>(std::move(network), std::move(info), context.precision);
}

std::optional<std::array<double, 3>> rgb_from_flag(const std::vector<double>& values, const char* flag) {
  if (values.empty()) return std::nullopt;
  if (values.size() != 3)
    throw input_error("{}: expected three numbers R,G,B, found {}", flag, values.size());
  return std::array<double, 3>{values[0], values[1], values[2]};
}

std::unique_ptr<Classifier> load_classifier(const std::string& spec, const LoadOptions& options,
                                            const Context& context) {
  if (spec.starts_with("script:")) return load_script_classifier(spec.substr(7), options, context);
  if (spec.starts_with("onnx:")) return load_onnx_classifier(spec.substr(5), options, context);
  if (!model_directory(spec) && spec.ends_with(".onnx")) {
    spdlog::info("{} is an ONNX file: taken as onnx:{}", spec, spec);
    return load_onnx_classifier(spec, options, context);
  }
  if (!model_directory(spec) && script_summary(spec)) {
    spdlog::info("{} is a TorchScript file: taken as script:{}", spec, spec);
    return load_script_classifier(spec, options, context);
  }
  auto [network, kind, info] = load_network(spec);
  if (kind != "classifier" || network->classes() == 0)
    throw input_error("{}: expected a classifier, found an encoder", spec);
  info.input = with_overrides(info.input, options);
  return classifier_from_network(std::move(network), std::move(info), context);
}

void save_classifier(const std::string& directory, Network& network, ModelCard card) {
  if (card.kind.empty()) card.kind = "classifier";
  card.architecture = network.family();
  card.network = network.config_json();
  write_model(directory, std::move(card), table_from_state(network.module()));
}

}  // namespace aha
