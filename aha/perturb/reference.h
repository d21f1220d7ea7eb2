// Reference images: what a removed pixel becomes. In pixel space, [0, 1].
//
//   black  pixel 0
//   mean   one color: the mean color of the images that the target was trained on
//   (ClassifierInfo::mean_color) blur   the image under a Gaussian, strong enough that a classifier no longer
//   recognizes it gray   zero in the target's normalized space, that is the normalization's mean: what much
//   public code
//          calls black
//
// The paper does not state its blur. `gaussian` is a plain normalized Gaussian with reflected borders; its
// width follows the image: sigma = 25/224 of the shorter side, 4 sigma + 1 taps (25 and 101 at 224 px, 3.6
// and 15 at 32 px). `rise` is the public RISE code's: 11 taps of the peculiar kernel below, zero padding of
// the *normalized* image, that is padding with gray. `adaptive` is MDA's (adaptive_blur.h): it follows the
// target's answers, so that only evaluations have it.
//
// Scores, training, refinement and the methods that hide pixels all take their references from here, with the
// same settings.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "aha/base/options.h"
#include "aha/tensor/tensor.h"

namespace aha {

enum class ReferenceKind { kBlack, kMean, kBlur, kGray };
ReferenceKind reference_from_name(const std::string& name);

struct ReferenceOptions {
  std::vector<double> mean_color;  // of `mean`; empty = the target's
  std::string blur = "gaussian";   // gaussian, rise, adaptive
  double sigma_px = 0;             // 0 = 25/224 of the shorter side (rise: 5)
  int kernel_px = 0;               // taps, odd; 0 = 4 sigma + 1 (rise: 11; adaptive: begins with 31 of 224)
  // Not among the fields: what only an evaluation knows, or sets.
  std::vector<double> gray = {};     // of `gray` and of the padding of rise's blur; empty = the mean color
  int last_kernel_px = 101;          // of the adaptive blur, at 224 pixels
  double hidden_probability = 0.01;  // of the class under the adaptive blur, at most
};
Fields fields(ReferenceOptions& options);

// The same options; where they name no mean color, it is the target's.
ReferenceOptions with_mean_color(ReferenceOptions options, const std::array<double, 3>& of_target);

// pixels (B, 3, H, W) in [0, 1] -> the same shape. Differentiable where it depends on the pixels.
Tensor reference_image(const Tensor& pixels, ReferenceKind kind, const ReferenceOptions& options);

// One reference for each image, kinds[b] by name; (B, 3, H, W), without history.
Tensor reference_images(const Tensor& pixels, std::span<const std::string> kinds,
                        const ReferenceOptions& options);

// The references named, each of all images: black, mean and blur where none is named.
std::vector<Tensor> all_references(const Tensor& pixels, const ReferenceOptions& options,
                                   std::vector<std::string> names = {});

// Whether they need what the target says of each image (adaptive_blur.h).
bool uses_adaptive_blur(const std::vector<std::string>& names, const ReferenceOptions& options);

// What a result says of its references: exact values in pixel space.
nlohmann::json json_from_references(const ReferenceOptions& options, std::vector<std::string> names = {});

// exp(-d^2 / 2 sigma^2), normalized.
std::vector<double> gaussian_weights(int taps, double sigma);

// RISE's kernel: a unit impulse in an array of `taps`, filtered with a Gaussian (cut at floor(4 sigma + 0.5))
// whose tails are reflected at the array's borders; much flatter than gaussian_weights. Sums to one.
std::vector<double> reflected_impulse_weights(int taps, double sigma);

}  // namespace aha
