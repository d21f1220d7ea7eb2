// Layer-wise relevance propagation through a transformer block (Chefer et al., CVPR 2021, arXiv:2012.09838):
// relevance R of what an operation gives becomes relevance of what it takes. a / b stands for a / (b + 1e-9),
// and 0 where b = 0.
//
//   y = W x         R_i = sum_j p_ji R_j / sum_i p_ji,  p_ji = x_i+ w_ji+ + x_i- w_ji-; the bias has no share
//   y = a + b       u = a R / y, v = b R / y, each then scaled so that sum u + sum v = sum R and they share
//   it
//                   as |sum u| to |sum v|
//   Y = A B         S = R / Y, R_A = A * (S B^T) / 2, R_B = B * (A^T S) / 2
//   all others      (softmax, norms, GELU, layer scale, rotary positions): R itself; two uses of one tensor
//   add
#pragma once

#include <utility>

#include "aha/nn/transformer_block.h"

namespace aha {

// weight (out, in), x (B, T, in), relevance (B, T, out) -> (B, T, in)
Tensor linear_relevance(const Tensor& weight, const Tensor& x, const Tensor& relevance);
// Of the two terms; every image by itself.
std::pair<Tensor, Tensor> sum_relevance(const Tensor& a, const Tensor& b, const Tensor& relevance);
// Of the two factors, (..., M, K) and (..., K, N).
std::pair<Tensor, Tensor> product_relevance(const Tensor& a, const Tensor& b, const Tensor& relevance);

struct BlockRelevance {
  Tensor attention;  // (B, heads, T, T)
  Tensor tokens;     // that enter the block, (B, T, D)
};
// x (B, T, D) enters the block, `relevance` is that of the tokens that leave it. Without gradient. Cost:
// about four forward passes of the block, beside the one that is done again here.
BlockRelevance block_relevance(TransformerBlockImpl& block, const Tensor& x, const Tensor& relevance,
                               const RopeTable* rope);

}  // namespace aha
