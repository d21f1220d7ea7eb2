// A ConvNeXt block that is being trained, as one autograd function on the fast kernels (convnext_block.h):
// the pixels and every weight get their gradient. Chunks, bits and second derivatives as in
// trainable_block.h.
//
// Memory: 9 D floats per pixel for the backward pass, kept from step to step, beside x, which autograd holds.
// Training a two-stage network: 1.4 times as fast as with libtorch's blocks.
#pragma once

#include <memory>

#include "aha/nn/convnext_block.h"

namespace aha {

class TrainableConvBlock {
 public:
  // Width in multiples of 32.
  TrainableConvBlock(int64_t width, double eps, const KernelSet& kernels);
  ~TrainableConvBlock();
  static bool fits(int64_t width) { return width > 0 && width % 32 == 0; }

  // (B, D, H, W) on the CPU, float32, fastest in channels-last memory -> the same, in channels-last memory.
  Tensor forward(const Tensor& x, const ConvNextBlockWeights& weights);

 private:
  struct Shared;
  struct Call;
  std::shared_ptr<Shared> shared_;
};

}  // namespace aha
