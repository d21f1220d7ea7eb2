// A transformer block that is being trained, as one autograd function on the fast kernels (vit_block.h): the
// tokens and every weight get their gradient.
//
// The parameters are float32, folded and packed at each call (0.4 % of a step at width 128 and 8,320 tokens).
// Images go in chunks, one thread a chunk; one or many threads give the same bits (chunks.h).
//
// Memory: what the backward pass needs of each chunk, kept from step to step: 10 D floats per token with an
// MLP of 2 D, queries, keys and values padded to 32 tokens. A second derivative is not available. All
// gradients of vit_mini_4 in float32: 1.53 times as fast as libtorch.
#pragma once

#include <memory>

#include "aha/nn/rope.h"
#include "aha/nn/vit_block.h"

namespace aha {

class TrainableBlock {
 public:
  static bool fits(const VitBlockOptions& options) { return options.fits_training(); }

  TrainableBlock(const VitBlockOptions& options, const KernelSet& kernels);
  ~TrainableBlock();

  // x (B, T, D) on the CPU, float32 -> (B, Q, D), the first Q = `first_tokens` tokens; 0 = all. rope: of the
  // last tokens; null = none.
  Tensor forward(const Tensor& x, const VitBlockWeights& weights, int64_t first_tokens = 0,
                 const RopeTable* rope = nullptr);

 private:
  struct Shared;
  struct Call;
  std::shared_ptr<Shared> shared_;
};

}  // namespace aha
