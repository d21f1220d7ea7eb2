// The target's answer differentiated: d y_t / d (input or taps), y_t the logit of each image's class.
//
// Images do not influence each other, so one backward pass of the sum of the logits gives the gradients of
// all of them. An image's numbers do not depend on its batch mates.
#pragma once

#include <string>
#include <vector>

#include "aha/networks/classifier.h"

namespace aha {

// With respect to the normalized input, as gradients are usually quoted: the gradient by pixels times the
// classifier's std. (B, 3, H, W)
Tensor input_gradient(Classifier& target, const Tensor& pixels, const Tensor& classes);

struct TappedGradients {
  std::vector<Tensor> values, gradients;  // in the order of the names
};
TappedGradients tapped_gradients(Classifier& target, const Tensor& pixels, const Tensor& classes,
                                 const std::vector<std::string>& names);

// The taps without gradients.
std::vector<Tensor> tapped_values(Classifier& target, const Tensor& pixels,
                                  const std::vector<std::string>& names);

// "block.0.attention", ... in forward order; empty where the target has none.
std::vector<std::string> attention_taps(const Classifier& target);
int blocks_with_attention(const Classifier& target);
// The feature maps (B, C, h, w) that enter a ConvNet's pooling: "features", or empty.
std::string feature_tap(const Classifier& target);

// The color of the mean reference (ClassifierInfo::mean_color), (1, 3, 1, 1).
Tensor mean_color(const Classifier& target, const Tensor& like);
// Where a path to an image may begin, (1, 3, 1, 1) in pixels: "zero" of the normalized input, the "mean"
// color of the mean reference, or "black".
Tensor baseline_color(const Classifier& target, const std::string& name, const Tensor& like);
// Per-channel constant of the target's normalization, (1, 3, 1, 1).
Tensor channel_std(const Classifier& target, const Tensor& like);

// logits (B, C), classes (B) -> (B)
Tensor chosen(const Tensor& logits, const Tensor& classes);

}  // namespace aha
