// A pre-norm transformer block: x += ls1(attn(norm1(x))), then x += ls2(mlp(norm2(x))); without layer scale
// ls is the identity.
//
// Taps: NAME.norm1 (B, T, D) what enters the attention, those of the attention, and NAME (B, T, D) the tokens
// that leave the block.
//
// While its weights are learned on the CPU the block runs on the fast kernels (trainable_block.h) wherever it
// fits and nothing inside it is tapped. forward_plain is their reference.
#pragma once

#include <torch/nn/modules/normalization.h>

#include "aha/nn/attention.h"
#include "aha/nn/layer_scale.h"
#include "aha/nn/mlp.h"
#include "aha/nn/trainable_block.h"

namespace aha {

struct TransformerBlockOptions {
  int64_t width, heads, mlp_hidden;
  double eps = 1e-6;
  bool layer_scale = false, swiglu = false;
};

struct TransformerBlockImpl : torch::nn::Cloneable<TransformerBlockImpl> {
  explicit TransformerBlockImpl(TransformerBlockOptions options) : options(options) { reset(); }
  void reset() override;
  // (B, T, D) -> (B, T, D), or the first `first_tokens` of the T where that is above 0.
  Tensor forward(const Tensor& x, const RopeTable* rope = nullptr, Taps* taps = nullptr,
                 const std::string& name = "", int64_t first_tokens = 0);
  // The same, operation by operation.
  Tensor forward_plain(const Tensor& x, const RopeTable* rope = nullptr, Taps* taps = nullptr,
                       const std::string& name = "");
  // Precision of the GEMMs in training; nothing = on libtorch.
  void set_precision(std::optional<Precision> wanted);
  // As the fast kernels take them; SwiGLU's gate and value are one.
  VitBlockOptions fast_options() const;
  VitBlockWeights weights() const;

  TransformerBlockOptions options;
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  Attention attn{nullptr};
  Mlp mlp{nullptr};
  LayerScale ls1{nullptr}, ls2{nullptr};

 private:
  TrainableBlock* trainable(const Tensor& x, const Taps* taps, const std::string& name);

  std::optional<Precision> precision_ = Precision::kF32;
  std::shared_ptr<TrainableBlock> trainable_;  // made when first needed
};
TORCH_MODULE(TransformerBlock);

}  // namespace aha
