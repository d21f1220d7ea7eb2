#include "aha/bench/bench_network.h"

#include "aha/explainer/explainer_catalog.h"
#include "aha/networks/network_classifier.h"
#include "aha/nn/module_state.h"

namespace aha {
namespace {

struct Wanted {
  const Architecture& architecture;
  std::shared_ptr<Network> network;  // random weights
};

Wanted wanted_from(const std::string& spec) {
  const size_t colon = std::min(spec.find(':'), spec.size());
  const Architecture& architecture = architecture_named(spec.substr(0, colon));
  const auto& family = family_of(architecture);
  const auto config = colon < spec.size() ? family.changed(architecture.config, spec.substr(colon + 1), spec)
                                          : architecture.config;
  auto network = family.make(config, spec);
  network->initialize(1);
  return {architecture, std::move(network)};
}

}  // namespace

Subject make_subject(const std::string& spec, const Context& context) {
  const auto [architecture, network] = wanted_from(spec);
  network->load_weights(table_from_state(network->module()));  // frozen, in the order it runs fastest in
  ClassifierInfo info;
  info.name = info.architecture = architecture.name;
  const bool encoder = architecture.kind == "encoder";
  info.input = default_input(architecture, "", encoder ? 224 : network->image_size());
  Subject subject;
  subject.size = info.input.size;
  std::shared_ptr<Classifier> fast = classifier_from_network(network, info, context),
                              eager = std::make_shared<NetworkClassifier>(network, info);
  subject.on_engine = fast->engine_memory().has_value();
  subject.packed_bytes = fast->engine_memory().value_or(EngineMemory()).packed_bytes;
  if (encoder) {
    const auto levels = network->default_levels();
    EncoderInfo own_info;
    own_info.normalized = true;
    std::shared_ptr<Encoder> own = encoder_from_classifier(fast, levels, own_info);
    subject.forward = [own](const Tensor& x) { return own->features(x).back(); };
    std::vector<std::string> taps;
    for (const auto& level : levels) taps.push_back(level + ".normalized");
    subject.eager_forward = [eager, taps](const Tensor& x) {
      Taps kept(taps);
      eager->logits(x, &kept);
      return maps_from_taps({kept.at(taps.back())}, {taps.back()}, eager->prefix_tokens())[0];
    };
    subject.differentiable = false;
    return subject;
  }
  subject.forward = [fast](const Tensor& x) { return fast->logits(x); };
  subject.eager_forward = [eager](const Tensor& x) { return eager->logits(x); };
  subject.target = std::move(fast);
  subject.eager = std::move(eager);
  return subject;
}

Learner make_learner(const std::string& spec) {
  const auto network = wanted_from(spec).network;
  Learner learner;
  learner.size = network->image_size();
  learner.forward = [network](const Tensor& x) { return network->forward(x); };
  learner.set_precision = [network](const std::optional<Precision>& precision) {
    network->set_precision(precision);
  };
  learner.parameters = network->module().parameters();
  return learner;
}

}  // namespace aha
