#include "aha/networks/network_classifier.h"

#include "aha/tensor/one_thread_each.h"

namespace aha {

NetworkClassifier::NetworkClassifier(std::shared_ptr<Network> network, ClassifierInfo info,
                                     std::optional<Precision> engine_precision)
    : network_(std::move(network)) {
  info_ = std::move(info);
  info_.classes = network_->classes();
  const bool on_cpu = network_->module().parameters().at(0).is_cpu();
  if (engine_precision && on_cpu) engine_ = network_->make_engine(info_.input, *engine_precision);
}

bool NetworkClassifier::on_engine(const Tensor& pixels) const {
  return engine_ && pixels.is_cpu() && pixels.size(2) == info_.input.size &&
         pixels.size(3) == info_.input.size;
}

Tensor NetworkClassifier::logits(const Tensor& pixels, Taps* taps) {
  if (!taps && on_engine(pixels) && info_.classes > 0) return engine_->logits(pixels);
  return network_->forward(network_input(pixels, info_.input), taps);
}

std::vector<Tensor> NetworkClassifier::features(const Tensor& pixels, const std::vector<std::string>& taps) {
  if (!on_engine(pixels) || !engine_->shows(taps)) return Classifier::features(pixels, taps);
  const torch::NoGradGuard no_grad;
  return maps_from_taps(engine_->taps(pixels, taps), taps, prefix_tokens());
}

PerturbedScores NetworkClassifier::perturbed_scores(const PerturbedImages& images, bool with_gradient) {
  if (on_engine(images.pixels))
    if (auto found = engine_->perturbed_scores(images, with_gradient)) return *found;
  return Classifier::perturbed_scores(images, with_gradient);
}

bool NetworkClassifier::gives_relevance(const std::vector<std::string>& taps) const {
  return engine_ && engine_->gives_relevance() && engine_->shows(taps);
}

std::optional<RelevanceAndFeatures> NetworkClassifier::relevance(const Tensor& pixels, const Tensor& classes,
                                                                 const std::vector<std::string>& taps,
                                                                 TokenRelevance rule) {
  if (!gives_relevance(taps) || !on_engine(pixels)) return std::nullopt;
  const auto found = engine_->relevance(pixels, classes, taps, rule);
  return RelevanceAndFeatures{found.tokens.slice(1, prefix_tokens()),
                              found.by_block.defined() ? found.by_block.slice(2, prefix_tokens()) : Tensor(),
                              maps_from_taps(found.taps, taps, prefix_tokens())};
}

void NetworkClassifier::visit_attention(const Tensor& pixels, const Tensor& classes,
                                        const AttentionVisit& visit, const AttentionVisitor& visitor) {
  if (on_engine(pixels) && engine_->visit_attention(pixels, classes, visit, visitor)) return;
  Classifier::visit_attention(pixels, classes, visit, visitor);
}

void NetworkClassifier::visit_attention_relevance(const Tensor& pixels, const Tensor& classes,
                                                  int first_block, const AttentionVisitor& visitor) {
  const Tensor x = network_input(pixels, info_.input);
  one_thread_each(pixels.size(0), [&](int64_t b) {
    network_->visit_attention_relevance(x.narrow(0, b, 1), classes[b].item<int64_t>(), first_block,
                                        [&](int block, const Tensor& relevance, const Tensor& gradient) {
                                          visitor(b, block, relevance, gradient);
                                        });
  });
}

Tensor NetworkClassifier::patch_subset_logits(const Tensor& pixels, const Tensor& patches) {
  check_shape(patches, {pixels.size(0), -1, -1}, "patches");
  const torch::NoGradGuard no_grad;
  if (on_engine(pixels))
    if (auto found = engine_->patch_subset_logits(pixels, patches)) return *found;
  return network_->patch_subset_logits(network_input(pixels, info_.input), patches);
}

Tensor NetworkClassifier::head_direction(const Tensor& read, const Tensor& weights) {
  const Tensor found = network_->head_direction(read, weights);
  return found.defined() ? found : Classifier::head_direction(read, weights);
}

std::optional<EngineMemory> NetworkClassifier::engine_memory() const {
  return engine_ ? std::optional(engine_->memory()) : std::nullopt;
}

}  // namespace aha
