// A frozen vision transformer on the fast kernels: forward, and forward + backward to the pixels or to the masks of perturbed images.
//
// Activations that feed a product exist only as that product's operand (kernels/activations.h); the residual stream, norms, softmax and sums are float32. Frozen
// weights are packed once: LayerNorm's affine part, LayerScale and 1/sqrt(d) are folded into the products that follow or precede them. Where only logits
// are wanted the last block computes the class token alone (7 % of the products at depth 12). Weights never get gradients.
//
// Images are processed in chunks, one thread a chunk; a row's value does not depend on its chunk, so results are the same for any number of threads and any
// batch split. Memory: the packs (2 bytes a weight at bf16, 4 at f32-exact, 4 without tiles; twice that once a gradient was asked for) and one workspace a thread.
#pragma once

#include <memory>
#include <vector>

#include "aha/kernels/kernel_set.h"
#include "aha/tensor/tensor.h"

namespace aha {

// Everything the network is, as plain float32 tensors on the CPU.
struct FrozenVitWeights {
  struct Block {
    Tensor norm1_weight, norm1_bias;  // (D)
    Tensor qkv_weight, qkv_bias;      // (3D, D), (3D)
    Tensor proj_weight, proj_bias;    // (D, D), (D)
    Tensor scale1, scale2;            // (D), undefined = no LayerScale
    Tensor norm2_weight, norm2_bias;  // (D)
    Tensor fc1_weight, fc1_bias;      // (F, D), (F)
    Tensor fc2_weight, fc2_bias;      // (D, F), (D)
  };
  int64_t height = 224, width = 224, patch = 16;
  int64_t heads = 3;
  int64_t class_tokens = 1;              // the first so many prefix tokens feed a head each: 2 for a distilled DeiT
  double eps = 1e-6;
  std::array<double, 3> mean = {0, 0, 0}, std = {1, 1, 1};
  Tensor patch_weight, patch_bias;       // (D, 3 P P), (D)
  Tensor prefix;                         // (prefix tokens, D), positions already added
  Tensor positions;                      // (N, D) of the patches; undefined = none
  Tensor rope_cos, rope_sin;             // (N, head width); undefined = none
  std::vector<Block> blocks;
  Tensor norm_weight, norm_bias;         // (D)
  std::vector<Tensor> head_weight, head_bias;  // one a class token, (C, D) and (C); logits are their mean. Empty = an encoder
};

class FrozenVit {
 public:
  FrozenVit(const FrozenVitWeights& weights, Precision precision);
  ~FrozenVit();

  // pixels (B, 3, H, W) in [0, 1] -> logits (B, C). One autograd function: differentiable in the pixels.
  Tensor logits(const Tensor& pixels);

  // Tokens after the given blocks (0-based), raw residual stream: each (B, T, D). No gradient.
  std::vector<Tensor> tokens_after(const Tensor& pixels, const std::vector<int>& blocks);

  // Perturbed images that never exist as images: for image b and mask s, pixel x shows
  // reference + keep[b, s, region(x)] * (image - reference).
  struct Perturbed {
    Tensor pixels, reference;  // (B, 3, H, W)
    Tensor region;             // (H, W) int32, each in 0..K-1
    Tensor keep;               // (B, S, K)
    Tensor classes;            // (B) int64
  };
  struct Probabilities {
    Tensor probs;     // (B, S): softmax probability of the image's class
    Tensor gradient;  // (B, S, K): its derivative by keep; undefined unless wanted
  };
  Probabilities perturbed_probabilities(const Perturbed& images, bool with_gradient);

  const KernelSet& kernels() const;
  int64_t packed_bytes() const;
  int64_t workspace_bytes() const;  // of one thread, at its largest so far

 private:
  friend struct FrozenVitFunction;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace aha
