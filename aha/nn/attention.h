// Multi-head self-attention, written out so that the probabilities can be seen:
//
//   [Q | K | V] = qkv(x), each third head-major
//   A = softmax(Q K^T / sqrt(d)),  out = proj(concat_heads(A V))
//
// Taps: NAME.value_out (B, T, D), proj without its bias of each token's values alone; NAME.attention (B,
// heads, T, T) after the softmax; NAME.attention_out (B, T, D) after proj.
#pragma once

#include "aha/nn/linear.h"
#include "aha/nn/rope.h"
#include "aha/nn/taps.h"

namespace aha {

struct AttentionOptions {
  int64_t width, heads;
};

struct AttentionImpl : torch::nn::Cloneable<AttentionImpl> {
  explicit AttentionImpl(AttentionOptions options) : options(options) { reset(); }
  void reset() override;
  // (B, T, D) -> (B, T, D). `rope` may be null, `taps` may be null.
  Tensor forward(const Tensor& x, const RopeTable* rope = nullptr, Taps* taps = nullptr,
                 const std::string& name = "");

  // Q, K and V, (B, heads, T, d) each; Q and K turned by `rope`.
  std::vector<Tensor> heads_of(const Tensor& x, const RopeTable* rope);

  AttentionOptions options;
  Linear qkv{nullptr}, proj{nullptr};
};
TORCH_MODULE(Attention);

}  // namespace aha
