// A frozen network of any family as a classifier: on its fast engine where it has one that fits, else on
// libtorch.
#pragma once

#include "aha/networks/network.h"

namespace aha {

class NetworkClassifier : public Classifier {
 public:
  // With a precision the engine is made here, for inputs of info.input: the weights must not change
  // afterwards. A network without a head gives features only.
  NetworkClassifier(std::shared_ptr<Network> network, ClassifierInfo info,
                    std::optional<Precision> engine_precision = std::nullopt);
  template <class Holder>  // a torch module
  NetworkClassifier(const Holder& network, ClassifierInfo info,
                    std::optional<Precision> engine_precision = std::nullopt)
      : NetworkClassifier(std::shared_ptr<Network>(network.ptr()), std::move(info), engine_precision) {}

  Tensor logits(const Tensor& pixels, Taps* taps = nullptr) override;
  std::vector<std::string> tap_names() const override { return network_->tap_names(); }
  std::vector<std::string> default_levels() const override { return network_->default_levels(); }
  int prefix_tokens() const override { return network_->prefix_tokens(); }
  bool opens_blocks() const override { return prefix_tokens() > 0; }
  Tensor head_weights() const override { return network_->head_weights(); }
  std::vector<Tensor> features(const Tensor& pixels, const std::vector<std::string>& taps) override;
  PerturbedScores perturbed_scores(const PerturbedImages& images, bool with_gradient) override;
  bool gives_relevance(const std::vector<std::string>& taps) const override;
  std::optional<RelevanceAndFeatures> relevance(const Tensor& pixels, const Tensor& classes,
                                                const std::vector<std::string>& taps,
                                                TokenRelevance rule) override;
  Tensor patch_subset_logits(const Tensor& pixels, const Tensor& patches) override;
  void visit_attention(const Tensor& pixels, const Tensor& classes, const AttentionVisit& visit,
                       const AttentionVisitor& visitor) override;
  void visit_attention_relevance(const Tensor& pixels, const Tensor& classes, int first_block,
                                 const AttentionVisitor& visitor) override;
  Tensor read_out(const Tensor& tokens) override { return network_->read_out(tokens); }
  Tensor attention_gradient(int block, const Tensor& normed, const Tensor& stream) override {
    return network_->attention_gradient(block, normed, stream);
  }
  Tensor logits_from_features(const Tensor& features) override {
    return network_->logits_from_features(features);
  }
  Tensor head_direction(const Tensor& read, const Tensor& weights) override;
  std::optional<EngineMemory> engine_memory() const override;

  const std::shared_ptr<Network>& shared_network() const { return network_; }

 private:
  bool on_engine(const Tensor& pixels) const;

  const std::shared_ptr<Network> network_;
  std::unique_ptr<Engine> engine_;  // never changes after the constructor
};

}  // namespace aha
