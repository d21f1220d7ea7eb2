#include "aha/bench/subject.h"

#include "aha/models/catalog.h"
#include "aha/models/vit_encoder.h"
#include "aha/models/vit_engine.h"
#include "aha/nn/state.h"

namespace aha {
namespace {

template <class Network>
void fill_classifier(Subject& subject, Network network, ClassifierInfo info, const Context& context) {
  subject.target = classifier_from_network(network, info, context);
  if constexpr (std::is_same_v<Network, Vit>)
    subject.eager = std::make_unique<VitClassifier>(network, info);
  else
    subject.eager = std::make_unique<ConvNextClassifier>(network, info);
  subject.forward = [target = subject.target.get()](const Tensor& x) { return target->logits(x); };
  subject.on_engine = [target = subject.target.get()] { return target->engine() != nullptr; };
  subject.eager_forward = [network, input = info.input](const Tensor& x) mutable {
    return network->forward(normalized(x, input));
  };
}

void fill_encoder(Subject& subject, Vit network, const InputSpec& input, const Context& context) {
  EncoderInfo info;
  info.normalized = true;
  info.mean = input.mean;
  info.std = input.std;
  std::shared_ptr<Encoder> encoder = encoder_from_vit(network, info, {}, context.precision);
  subject.forward = [encoder](const Tensor& x) { return encoder->features(x).back(); };
  subject.eager_forward = [network, input](const Tensor& x) mutable {
    return network->intermediate(normalized(x, input), default_blocks(network->config.depth), true).back();
  };
  subject.on_engine = [fits = engine_fits(network->config, input)] { return fits; };
  subject.differentiable = false;
}

template <class Network, class Config>
Network frozen_network(const Config& config) {
  Network network(config);
  network->initialize(1);
  freeze(*network);
  return network;
}

struct Wanted {
  const Architecture& architecture;
  decltype(Architecture::config) config;
};

Wanted wanted_from(const std::string& spec) {
  const size_t colon = std::min(spec.find(':'), spec.size());
  const Architecture& architecture = architecture_named(spec.substr(0, colon));
  auto config = architecture.config;
  if (colon < spec.size())
    std::visit([&](auto& c) { set_all_from_spec(fields(c), spec.substr(colon + 1), spec); }, config);
  return {architecture, config};
}

template <class Network>
Learner learner_from(Network network, int size) {
  network->initialize(1);
  Learner learner;
  learner.size = size;
  learner.forward = [network](const Tensor& x) mutable { return network->forward(x); };
  learner.set_precision = [network](const std::optional<Precision>& precision) mutable {
    network->set_precision(precision);
  };
  learner.parameters = network->parameters();
  return learner;
}

}  // namespace

Subject make_subject(const std::string& spec, const Context& context) {
  const auto [architecture, config] = wanted_from(spec);
  ClassifierInfo info;
  info.name = info.architecture = architecture.name;
  std::visit([&](const auto& c) { info.classes = c.classes; }, config);
  const bool encoder = architecture.kind == "encoder";
  const int image_size = std::visit([](const auto& c) { return c.image_size; }, config);
  info.input = default_input(architecture, "", encoder ? 224 : image_size);
  Subject subject;
  subject.size = info.input.size;
  if (const auto* vit = std::get_if<VitConfig>(&config)) {
    const auto network = frozen_network<Vit>(*vit);
    if (encoder)
      fill_encoder(subject, network, info.input, context);
    else
      fill_classifier(subject, network, info, context);
  } else {
    fill_classifier(subject, frozen_network<ConvNext>(std::get<ConvNextConfig>(config)), info, context);
  }
  return subject;
}

Learner make_learner(const std::string& spec) {
  const auto wanted = wanted_from(spec);
  if (const auto* vit = std::get_if<VitConfig>(&wanted.config))
    return learner_from(Vit(*vit), vit->image_size);
  const auto& convnext = std::get<ConvNextConfig>(wanted.config);
  return learner_from(ConvNext(convnext), convnext.image_size);
}

}  // namespace aha
