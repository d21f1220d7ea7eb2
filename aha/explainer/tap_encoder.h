// The encoder of encoder.h: taps of a network.
#pragma once

#include "aha/explainer/encoder.h"

namespace aha {

class TapEncoder : public Encoder {
 public:
  TapEncoder(std::shared_ptr<Classifier> network, std::vector<std::string> levels, EncoderInfo info);

  std::vector<Tensor> features(const Tensor& pixels) override;
  bool looks_into(const Classifier& target) const override { return network_.get() == &target; }
  FeaturesAndTap features_and_tap(const Tensor& pixels, const std::string& tap) override;
  bool gives_relevance(const Classifier& target) const override;
  std::optional<FeaturesAndRelevance> features_and_relevance(const Tensor& pixels, const Tensor& classes,
                                                             TokenRelevance rule) override;

  Classifier& network() const { return *network_; }
  const std::vector<std::string>& taps() const { return taps_; }
  // Which of the taps each level joins.
  std::vector<std::vector<size_t>> taps_of_levels() const;

 private:
  std::vector<Tensor> levels_from(const std::vector<Tensor>& maps) const;

  std::shared_ptr<Classifier> network_;
  std::vector<std::string> taps_;
};

}  // namespace aha
