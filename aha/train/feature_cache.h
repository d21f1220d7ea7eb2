// What a training run needs of an image and never changes: the frozen encoder's features, the prior and the
// class that is explained.
//
// Computed at first use, then kept as long as memory allows. Each image is computed alone on one thread, so
// its numbers do not depend on when it was first asked for.
#pragma once

#include <unordered_map>

#include "aha/explainer/explainer.h"

namespace aha {

struct ImageFeatures {
  std::vector<Tensor> levels;  // (1, C_k, h_k, w_k)
  Tensor prior, prior_parts;   // as Features, of one image
  int64_t explained = 0;       // the class: the target's answer, or the label
  int64_t bytes() const;
};

class FeatureCache {
 public:
  FeatureCache(Classifier& target, Explainer& explainer, int64_t most_bytes);

  // keys[i] names pixels[i]; where labels are given they are the classes, else the target's answers are.
  std::vector<ImageFeatures> of(const std::vector<int64_t>& keys, const Tensor& pixels, const Tensor& labels);

 private:
  Classifier& target_;
  Explainer& explainer_;
  int64_t most_bytes_, bytes_ = 0;
  std::unordered_map<int64_t, ImageFeatures> kept_;
};

// As one batch.
Features joined(std::span<const ImageFeatures> images, int64_t height, int64_t width);

}  // namespace aha
