// A frozen vision transformer on the fast kernels: forward, and forward + backward to the pixels or to the
// masks of perturbed images.
//
// The blocks are those of vit_block.h, folded and packed once. Where only logits are wanted the last block
// computes the class tokens alone.
//
// Memory: the packs (2 bytes per weight at bf16, 4 at f32-exact, 4 without tiles) and one workspace a thread.
// The backward pass transposes a pack when it needs it.
#pragma once

#include <vector>

#include "aha/nn/attention_visit.h"
#include "aha/nn/frozen_network.h"
#include "aha/nn/vit_block.h"

namespace aha {

// Everything the network is, as plain float32 tensors on the CPU.
struct FrozenVitWeights {
  using Block = VitBlockWeights;
  int64_t height = 224, width = 224, patch = 16;
  int64_t heads = 3;
  int64_t class_tokens = 1;  // the first so many prefix tokens feed a head each: 2 for a distilled DeiT
  double eps = 1e-6;
  std::array<double, 3> mean = {0, 0, 0}, std = {1, 1, 1};
  Tensor patch_weight, patch_bias;  // (D, 3 P P), (D)
  Tensor prefix;                    // (prefix tokens, D), positions already added
  Tensor positions;                 // (N, D) of the patches; undefined = none
  Tensor rope_cos, rope_sin;        // (N, head width); undefined = none
  bool swiglu = false;
  std::vector<Block> blocks;
  Tensor norm_weight, norm_bias;  // (D)
  std::vector<Tensor> head_weight,
      head_bias;  // one per class token, (C, D) and (C); logits are their mean. Empty = an encoder
};

class FrozenVit : public FrozenNetwork {
 public:
  FrozenVit(const FrozenVitWeights& weights, Precision precision);  // on the best kernels of this machine
  FrozenVit(const FrozenVitWeights& weights, const KernelSet& kernels);

  // A tap of block `block` (0-based): the raw residual stream behind it, (B, T, D), or how the class token
  // attends in it, (B, heads, 1, T).
  struct BlockTap {
    int block = 0;
    bool class_attention = false;
  };
  // One tensor per tap. No gradient.
  std::vector<Tensor> tapped(const Tensor& pixels, const std::vector<BlockTap>& taps);

  // What every token counts for its image's class (TokenRelevance). Chefer's row grows in the backward pass,
  // block by block; the direct one needs none. No gradient. Looks are taken in the forward pass and equal
  // those of tapped().
  struct Relevance {
    Tensor tokens;               // (B, T)
    Tensor by_block;             // (B, blocks, T), their parts by the direct rule; undefined by Chefer's
    std::vector<Tensor> tapped;  // one per tap
  };
  Relevance relevance(const Tensor& pixels, const Tensor& classes, const std::vector<BlockTap>& taps = {},
                      TokenRelevance rule = TokenRelevance::kChefer);  // classes (B) int64

  // Shows the attention of every image, last block first (Classifier::visit_attention). What the backward
  // pass needs is kept from first_block on; for the last block alone that is next to nothing. Behind a
  // read-out the gradient goes through one MLP and one projection only, by the direct way through the
  // projection alone.
  void visit_attention(const Tensor& pixels, const Tensor& classes, const AttentionVisit& visit,
                       const AttentionVisitor& visitor);

  // Logits of the prefix with these patches alone: patches (B, S, n) int64, row-major indices -> (B, S, C).
  // Each image is embedded once. Not with rotary positions.
  Tensor patch_subset_logits(const Tensor& pixels, const Tensor& patches);

 private:
  struct Body;
};

}  // namespace aha
