// A frozen vision transformer on the fast kernels: forward, and forward + backward to the pixels or to the
// masks of perturbed images.
//
// Activations that feed a product exist only as that product's operand (kernels/activations.h); the residual
// stream, norms, softmax and sums are float32. Frozen weights are packed once: LayerNorm's affine part,
// LayerScale and 1/sqrt(d) are folded into the products that follow or precede them. Where only logits are
// wanted the last block computes the class token alone (7 % of the products at depth 12).
//
// Memory: the packs (2 bytes per weight at bf16, 4 at f32-exact, 4 without tiles; twice that once a gradient
// was asked for) and one workspace a thread.
#pragma once

#include <vector>

#include "aha/nn/frozen_network.h"

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
  int64_t class_tokens = 1;  // the first so many prefix tokens feed a head each: 2 for a distilled DeiT
  double eps = 1e-6;
  std::array<double, 3> mean = {0, 0, 0}, std = {1, 1, 1};
  Tensor patch_weight, patch_bias;  // (D, 3 P P), (D)
  Tensor prefix;                    // (prefix tokens, D), positions already added
  Tensor positions;                 // (N, D) of the patches; undefined = none
  Tensor rope_cos, rope_sin;        // (N, head width); undefined = none
  std::vector<Block> blocks;
  Tensor norm_weight, norm_bias;  // (D)
  std::vector<Tensor> head_weight,
      head_bias;  // one per class token, (C, D) and (C); logits are their mean. Empty = an encoder
};

class FrozenVit : public FrozenNetwork {
 public:
  FrozenVit(const FrozenVitWeights& weights, Precision precision);  // on the best kernels of this machine
  FrozenVit(const FrozenVitWeights& weights, const KernelSet& kernels);

  // A look into block `block` (0-based): the raw residual stream behind it, (B, T, D), or how the class token
  // attends in it, (B, heads, 1, T).
  struct Look {
    int block = 0;
    bool class_attention = false;
  };
  // One tensor per look. No gradient.
  std::vector<Tensor> seen(const Tensor& pixels, const std::vector<Look>& looks);

  // What every token counts for its image's class by attention and gradient (Chefer et al. 2021): the class
  // token's row of (I + C_last) ... (I + C_0), C = relu(mean over heads of P * dlogit/dP). That row grows in
  // the backward pass, block by block. No gradient. Looks are taken in the forward pass and equal those of
  // seen().
  struct Relevance {
    Tensor tokens;             // (B, T)
    std::vector<Tensor> seen;  // one per look
  };
  Relevance relevance(const Tensor& pixels, const Tensor& classes,
                      const std::vector<Look>& looks = {});  // classes (B) int64

 private:
  struct Body;
};

}  // namespace aha
