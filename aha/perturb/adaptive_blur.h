// The canvas of MDA's search and protocol (Walker et al. 2025): the weakest of a series of blurs under which
// the target no longer recognizes the class.
//
//   kernel = sigma = 31, 33, ... pixels, until the probability is 0.01 or less or the kernel is above 101
//
// The kernel is RISE's (reference.h): with sigma as wide as the kernel it is a box to four digits. Borders
// are zero in the normalized image, that is the normalization's mean color. The published sizes are for 224
// pixels; smaller or larger images get them in proportion, odd and at least 3.
//
// Cost: one forward pass of the target per blur tried, 37 at most.
#pragma once

#include <array>
#include <functional>

#include "aha/tensor/tensor.h"

namespace aha {

struct AdaptiveBlurOptions {
  double threshold = 0.01;           // of the probability
  int first_px = 31, last_px = 101;  // kernels at 224 pixels
  int step_px = 2;
};

struct AdaptiveBlur {
  Tensor image;  // (3, H, W): the last blur tried
  int kernel_px = 0;
  double probability = 0;  // of the class on it
  bool found = false;  // false = none up to the last kernel was strong enough: the protocol skips such images
  int asked = 0;       // forward passes
};

// image (3, H, W) in [0, 1]; mean: of the target's normalization; probability: of the class on such an image.
AdaptiveBlur adaptive_blur(const Tensor& image, const std::array<double, 3>& mean,
                           const std::function<double(const Tensor&)>& probability,
                           const AdaptiveBlurOptions& options = {});

}  // namespace aha
