// Perturbed images composed straight into the patch rows that the network multiplies: they never exist as
// images.
//
// A perturbed image shows region j of image I with weight keep[j] over the reference I0 (deletion: keep = 1 -
// m; insertion: keep = m). Normalised,
//
//   x = (I0 - mean) / std + keep[region] * (I - I0) / std = base + keep[region] * difference
//
// base and difference are laid out once as patch rows (channel, y, x within the patch: a convolution's
// weights flattened); a perturbed image is then one fused multiply-add a value. Back:  d loss / d keep[j] =
// sum over pixels of region j and channels of (d loss / d x) * difference.
#pragma once

#include <array>
#include <span>

#include "aha/kernels/core/activations.h"

namespace aha {

struct KernelSet;

struct PatchGeometry {
  int height = 224, width = 224;  // pixels, multiples of the patch
  int patch = 16;                 // side in pixels
  int prefix_tokens = 1;          // rows before the patches (class token, registers): left zero
  std::array<double, 3> mean = {0, 0, 0};
  std::array<double, 3> std = {1, 1, 1};

  int64_t patches() const { return int64_t{height / patch} * (width / patch); }
  int64_t tokens() const { return prefix_tokens + patches(); }  // rows of one image
  int64_t columns() const { return int64_t{3} * patch * patch; }
};

class PatchSource {
 public:
  // image, reference: (3, H, W) pixels. region: (H, W), each in 0..regions-1.
  PatchSource(const PatchGeometry& geometry, std::span<const float> image, std::span<const float> reference,
              std::span<const int32_t> region, int64_t regions);

  const PatchGeometry& geometry() const { return geometry_; }
  int64_t regions() const { return regions_; }
  // Rows as the network multiplies them, padded_columns() values apart; beyond columns() they are zero.
  int64_t padded_columns() const { return rounded_to_strip(geometry_.columns()); }
  const float* base(int64_t patch) const { return base_.data() + patch * padded_columns(); }
  const float* difference(int64_t patch) const { return difference_.data() + patch * padded_columns(); }
  // Region of each pixel of a patch, row by row. Rows are padded_area() apart; what is added says 0.
  int64_t area() const { return int64_t{geometry_.patch} * geometry_.patch; }
  int64_t padded_area() const { return (area() + 15) / 16 * 16; }
  const int32_t* region(int64_t patch) const { return region_.data() + patch * padded_area(); }

 private:
  PatchGeometry geometry_;
  int64_t regions_;
  AlignedBuffer<float> base_, difference_;
  AlignedBuffer<int32_t> region_;
};

// Writes the geometry().tokens() rows of one perturbed image from row `first_row` on. keep: regions() values.
void compose(const KernelSet& kernels, const PatchSource& source, std::span<const float> keep,
             int64_t first_row, Activations& rows);

// gradient: d loss / d x, the tokens() rows of one perturbed image, `stride` apart (prefix rows are skipped).
// d_keep: regions() values, overwritten.
void compose_backward(const KernelSet& kernels, const PatchSource& source, const float* gradient,
                      int64_t stride, std::span<float> d_keep);

}  // namespace aha
