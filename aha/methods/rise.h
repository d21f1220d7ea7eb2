// RISE's parts (Petsiuk et al. 2018), apart from the method so that they can be tested.
#pragma once

#include "aha/base/rng.h"
#include "aha/tensor/tensor.h"

namespace aha {

// `count` masks (count, H, W) in [0, 1]: a cells x cells grid of 0/1 with P(1) = share, upsampled bilinearly
// (half-pixel centers, edges repeated) to (cells + 1) * ceil(side / cells) and cut at a random offset below
// one cell. Takes its numbers from the rng in order: the same masks whatever the chunks they are asked in.
Tensor rise_masks(int64_t count, int64_t cells, double share, int64_t height, int64_t width, Rng& rng);
// One at a time with libtorch's upsampling: what rise_masks is tested against.
Tensor rise_masks_plain(int64_t count, int64_t cells, double share, int64_t height, int64_t width, Rng& rng);

// Masks times their scores, summed by groups (rank_error.h).
class RiseSums {
 public:
  RiseSums(int64_t height, int64_t width);
  void add(const Tensor& masks, const Tensor& scores);  // (n, H, W), (n) float32
  int64_t masks() const { return masks_; }
  Tensor map(double share) const;  // (1 / (N share)) sum_k score_k mask_k, (H, W) float32
  double rank_error() const;       // of cells of 1/28 of the side, or of single pixels in smaller images

 private:
  int64_t height_, width_, masks_ = 0;
  Tensor sums_;  // (G, H W) float64
};

}  // namespace aha
