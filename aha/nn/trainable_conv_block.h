// A ConvNeXt block that is being trained, as one autograd function on the fast kernels: the pixels and every
// weight get their gradient.
//
//   out = x + gamma * fc2(gelu(fc1(norm(dwconv7x7(x)))))
//
// Images go in chunks, one thread per chunk; norm and gamma are folded into the two products
// (folded_product.h). As in trainable_block.h, one or many threads give the same bits, and a second
// derivative is not available.
//
// Measured: `aha fit` of a two-stage network (64 and 128 channels, 4 blocks each) on 4,000 images, two
// workers, libtorch's blocks and these in turn: 219, 228 and 309, 328 images/s.
//
// Memory: 9 D floats per pixel for the backward pass, kept from step to step, beside x, which autograd holds.
#pragma once

#include <memory>

#include "aha/kernels/kernel_set.h"
#include "aha/tensor/tensor.h"

namespace aha {

// In the order of their gradients.
struct TrainableConvBlockWeights {
  Tensor dw_weight, dw_bias;      // (D, 1, 7, 7), (D)
  Tensor norm_weight, norm_bias;  // (D)
  Tensor fc1_weight, fc1_bias;    // (4D, D), (4D)
  Tensor fc2_weight, fc2_bias;    // (D, 4D), (D)
  Tensor gamma;                   // (D)
};

class TrainableConvBlock {
 public:
  // Width in multiples of 32.
  TrainableConvBlock(int64_t width, double eps, const KernelSet& kernels);
  ~TrainableConvBlock();
  static bool fits(int64_t width) { return width > 0 && width % 32 == 0; }

  // (B, D, H, W) on the CPU, float32, fastest in channels-last memory -> the same, in channels-last memory.
  Tensor forward(const Tensor& x, const TrainableConvBlockWeights& weights);

 private:
  friend struct TrainableConvBlockFunction;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace aha
