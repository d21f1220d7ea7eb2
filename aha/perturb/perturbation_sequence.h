// Perturbation sequences: the images that deletion and insertion are measured on.
//
// An order decides which elements go: the k most important (deletion) or the k least important (insertion at
// N - k, the same image seen from the other end). Images are made when asked for, a few steps at a time, so
// that memory is bounded by the caller: 32 images of 224 px are 19 MB, a whole sequence of 224 steps times a
// batch would be gigabytes. Soft masks, which training differentiates, never become images here:
// objective/sequence_probabilities.h.
#pragma once

#include <vector>

#include "aha/tensor/tensor.h"

namespace aha {

enum class Removal {
  kTop,     // the most important first: deletion
  kBottom,  // the least important first: insertion, read backwards
};

class HardSequence {
 public:
  // pixels, reference (B, 3, H, W); order (B, H * W), a permutation for each image
  HardSequence(const Tensor& pixels, const Tensor& reference, const Tensor& order,
               std::vector<int64_t> counts, Removal removal);

  int64_t steps() const { return static_cast<int64_t>(counts_.size()); }
  Tensor images(int64_t first, int64_t count) const;  // (B, count, 3, H, W); kept pixels are bit-exact

 private:
  Tensor pixels_, reference_, order_;
  std::vector<int64_t> counts_;
  Removal removal_;
};

}  // namespace aha
