// A transformer block that is being trained, as one autograd function on the fast kernels: the tokens and
// every weight get their gradient.
//
//   x += s1 * proj(attention(norm1(x))),  x += s2 * fc2(gelu(fc1(norm2(x))))          s1, s2: LayerScale or 1
//
// The masters are float32. Each call folds norms, LayerScale and 1/sqrt(d) into the four products
// (folded_product.h) and packs them anew (0.4 % of a step at width 128 and 8,320 tokens).
//
// Images go in chunks, one thread per chunk. Neither the chunks nor the order in which their weight gradients
// are summed depends on the number of threads, so that one or many threads give the same bits.
//
// Memory: what the backward pass needs of each chunk, kept from step to step: 10 D floats per token with an
// MLP of 2 D, queries, keys and values padded to 32 tokens. A second derivative is not available.
//
// Measured: all gradients of vit_mini_4 at 128 images, float32 on AVX-512, one thread, CPU time on a busy
// machine: 1.53 times as fast as libtorch (444 and 681 ms). Sharing its parts with trainable_conv_block.h
// cost nothing: `aha fit` of vit_mini_4 on 4,000 images, two workers, before and after in turn: 459, 384 and
// 428, 447 images/s.
#pragma once

#include <memory>
#include <vector>

#include "aha/kernels/kernel_set.h"
#include "aha/tensor/tensor.h"

namespace aha {

// The weights of a block in the order of its gradients.
struct TrainableBlockWeights {
  Tensor norm1_weight, norm1_bias;  // (D)
  Tensor qkv_weight, qkv_bias;      // (3D, D), (3D)
  Tensor proj_weight, proj_bias;    // (D, D), (D)
  Tensor norm2_weight, norm2_bias;  // (D)
  Tensor fc1_weight, fc1_bias;      // (F, D), (F)
  Tensor fc2_weight, fc2_bias;      // (D, F), (D)
  Tensor scale1, scale2;            // (D), undefined = no LayerScale
};

struct TrainableBlockOptions {
  int64_t width = 192, heads = 3, hidden = 768;
  double eps = 1e-6;
};

class TrainableBlock {
 public:
  // Widths of tokens, heads and MLP in multiples of 32.
  static bool fits(const TrainableBlockOptions& options);

  TrainableBlock(const TrainableBlockOptions& options, const KernelSet& kernels);
  ~TrainableBlock();

  // x (B, T, D) on the CPU, float32 -> (B, Q, D), the first Q = `first_tokens` tokens; 0 = all. The last
  // block of a classifier needs only its class token: queries, projection and MLP then run on Q of T tokens.
  Tensor forward(const Tensor& x, const TrainableBlockWeights& weights, int64_t first_tokens = 0);

  const KernelSet& kernels() const;

 private:
  friend struct TrainableBlockFunction;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace aha
