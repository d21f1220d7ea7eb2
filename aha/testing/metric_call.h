// A Metric called as an evaluation does it, on images with a toy target.
#pragma once

#include "aha/tensor/torch.h"

#include <numeric>

#include "aha/metrics/catalog.h"

namespace aha::checks {

// Images with everything that a Metric may look at; the references are black, or those given.
inline MetricImages metric_images_of(Classifier& target, const Tensor& pixels, const Tensor& classes,
                                     std::map<std::string, Tensor> references = {}) {
  const Context context;
  if (references.empty()) references["black"] = torch::zeros_like(pixels);
  MetricImages images{pixels, classes, {}, logits_of(target, pixels, context), references, {}, {}};
  for (const auto& [name, reference] : references)
    images.replaced[name] = logits_of(target, reference, context);
  images.streams.resize(static_cast<size_t>(pixels.size(0)));
  std::iota(images.streams.begin(), images.streams.end(), uint64_t{7});
  images.annotations.resize(images.streams.size());
  return images;
}

// spec: NAME or NAME:option=value.
inline std::vector<MetricValues> measured(const std::string& spec, Classifier& target,
                                          const MetricImages& images, const Tensor& maps,
                                          const Context& context = {},
                                          ScoreKind score = ScoreKind::kProbability) {
  const auto groups = measured_metrics({spec});
  ScoreQueue questions(target, images.pixels.size(2), images.pixels.size(3), context);
  const auto finish = groups.at(0).metric->measure({target, images, maps, questions, score, {}, context});
  questions.flush();
  return finish();
}

// The probability of class 0 is the mean of the first channel.
class MeanToy : public Classifier {
 public:
  explicit MeanToy(int size) {
    info_.name = "mean toy";
    info_.classes = 2;
    info_.input.size = size;
  }
  Tensor logits(const Tensor& pixels, Taps* = nullptr) override {
    const Tensor p = pixels.select(1, 0).to(torch::kFloat64).mean({1, 2}).clamp(1e-6, 1 - 1e-6);
    return torch::stack({p.log(), (1 - p).log()}, 1);
  }
};

}  // namespace aha::checks
