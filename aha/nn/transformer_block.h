// A pre-norm transformer block: x += ls1(attn(norm1(x))), then x += ls2(mlp(norm2(x))); without layer scale
// ls is the identity.
//
// Taps: NAME.norm1 (B, T, D) what enters the attention, those of the attention, and NAME (B, T, D) the tokens
// that leave the block.
#pragma once

#include <torch/nn/modules/normalization.h>

#include "aha/nn/attention.h"
#include "aha/nn/layer_scale.h"
#include "aha/nn/mlp.h"

namespace aha {

struct TransformerBlockOptions {
  int64_t width, heads, mlp_hidden;
  double eps = 1e-6;
  bool layer_scale = false, swiglu = false;
};

struct TransformerBlockImpl : torch::nn::Cloneable<TransformerBlockImpl> {
  explicit TransformerBlockImpl(TransformerBlockOptions options) : options(options) { reset(); }
  void reset() override;
  Tensor forward(const Tensor& x, const RopeTable* rope = nullptr, Taps* taps = nullptr,
                 const std::string& name = "");

  TransformerBlockOptions options;
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  Attention attn{nullptr};
  Mlp mlp{nullptr};
  LayerScale ls1{nullptr}, ls2{nullptr};
};
TORCH_MODULE(TransformerBlock);

}  // namespace aha
