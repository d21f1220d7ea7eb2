// What is read out of a block's attention: the weights and their gradient, how the class token attends, and
// the relevance of tokens.
#pragma once

#include "aha/nn/vit_block.h"

namespace aha {

// Where a block's attention lies. q may be of fewer tokens than k and v.
struct AttentionSource {
  const Heads *q, *k, *v;
  const AlignedBuffer<float>* log_sum_exp;
  const Heads* dout = nullptr;  // gradient of what the attention gives; null = none
};
AttentionSource attention_of(const VitBlockState& state, const Heads* dout = nullptr);

// Tensors (heads, Q, T) that are filled again for every image unless somebody keeps them.
class ShownAttention {
 public:
  void read(const KernelSet& kernels, const AttentionSource& source, int64_t image);
  const Tensor& attention() const { return attention_; }
  const Tensor& gradient() const { return gradient_; }  // undefined where there is none

 private:
  Tensor attention_, gradient_;
};

// (heads, T) of one image: softmax of token 0's query with all keys.
void class_attention(const KernelSet& kernels, const VitBlockState& state, int64_t image, float* out);

// row += row C of one block, C = relu(mean over heads of P * dlogit/dP) (Chefer et al. 2021); attention and
// gradient (heads, Q, T). row (T) is zero but for the first Q tokens where these alone ask.
void add_relevance(const Tensor& attention, const Tensor& gradient, float* row);

// row += sum over heads and queries of P * gradient (AttentionVisit::Gradient::kDirect)
void add_contributions(const Tensor& attention, const Tensor& gradient, float* row);

}  // namespace aha
