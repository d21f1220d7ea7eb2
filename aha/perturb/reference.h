// Reference images: what a removed pixel becomes. In pixel space, [0, 1].
//
//   black  pixel 0
//   mean   one color, by default the mean of ImageNet; give a data set's own where it has another
//   blur   the image under a Gaussian, strong enough that a classifier no longer recognizes it
//
// The paper does not state its blur. `gaussian` is a plain normalized Gaussian with reflected borders; its
// width follows the image: sigma = 25/224 of the shorter side, 4 sigma + 1 taps (25 and 101 at 224 px, 3.6
// and 15 at 32 px). `rise` is the public RISE code's: 11 taps of the peculiar kernel below, zero padding of
// the *normalized* image, that is padding with the mean color.
#pragma once

#include <string>
#include <vector>

#include "aha/base/options.h"
#include "aha/tensor/tensor.h"

namespace aha {

enum class ReferenceKind { kBlack, kMean, kBlur };
ReferenceKind reference_from_name(const std::string& name);
std::string name_of(ReferenceKind kind);

struct ReferenceOptions {
  std::vector<double> color = {0.485, 0.456, 0.406};  // of `mean`, and of the padding of rise's blur
  std::string blur = "gaussian";                      // gaussian, rise
  double sigma_px = 0;                                // 0 = 25/224 of the shorter side (rise: 5)
  int kernel_px = 0;                                  // taps, odd; 0 = 4 sigma + 1 (rise: 11)
};

inline Fields fields(ReferenceOptions& o) {
  return Fields()
      .add("color", o.color, "red, green and blue of the mean reference, 0..1")
      .range(0, 1)
      .add("blur", o.blur, "kind of blur")
      .choices({"gaussian", "rise"})
      .add("blur-sigma", o.sigma_px, "width of the blur in pixels; 0 = by image size")
      .range(0, 10000)
      .add("blur-kernel", o.kernel_px, "taps of the blur in pixels, odd; 0 = by sigma")
      .range(0, 20001);
}

// pixels (B, 3, H, W) in [0, 1] -> the same shape. Differentiable where it depends on the pixels.
Tensor reference_image(const Tensor& pixels, ReferenceKind kind, const ReferenceOptions& options = {});

// exp(-d^2 / 2 sigma^2), normalized.
std::vector<double> gaussian_weights(int taps, double sigma);

// RISE's kernel: a unit impulse in an array of `taps`, filtered with a Gaussian (cut at floor(4 sigma + 0.5))
// whose tails are reflected at the array's borders; much flatter than gaussian_weights. Sums to one.
std::vector<double> reflected_impulse_weights(int taps, double sigma);

}  // namespace aha
