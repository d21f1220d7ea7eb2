// The class activation map. A ConvNet that ends in global average pooling and a linear layer has a logit that
// is a sum over places:
//
//   logit_t - bias_t = sum_ij (w_t . a_ij) / (h w)
//
// With a LayerNorm between pooling and head (ConvNeXt) the same holds while its standard deviation is held
// fixed: w_t becomes d logit_t / d pooled (Classifier::head_direction), and the norm's bias joins the head's.
#pragma once

#include <functional>

#include "aha/networks/classifier.h"

namespace aha {

// sum_c w_c a_c: features (B, C, h, w), weights (B, C) -> (B, h, w)
inline Tensor weighted_channels(const Tensor& features, const Tensor& weights) {
  return (features * weights.unsqueeze(2).unsqueeze(3)).sum(1);
}

// Any formula of one image's features: raw(b, features (1, C, h, w)) -> (1, h, w); (B, h, w) of all. Images
// may be asked from several threads, each with one thread of libtorch.
Tensor values_per_image(const Tensor& features,
                        const std::function<Tensor(int64_t b, const Tensor& features)>& raw);

// What each place adds to the logit: features (B, C, h, w) that enter the pooling, classes (B) -> (B, h, w)
Tensor cam_values(Classifier& target, const Tensor& features, const Tensor& classes);

}  // namespace aha
