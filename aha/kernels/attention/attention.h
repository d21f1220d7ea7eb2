// Softmax attention of every head, one image after the other; the T x T weights never leave the cache.
//
//   P = softmax(q k^T),  out = P v           q already carries the 1 / sqrt(width)
//
// Back, from the saved log-sum-exp of each row (P is computed again):
//
//   dP = dout v^T,  dS = P * (dP - rowsum(P * dP)),  dq = dS k,  dk = dS^T q,  dv = P^T dout
//
// Any number of tokens from 1. The queries may be fewer than the keys: the last block of a classifier needs
// only its class token.
#pragma once

#include "aha/kernels/core/activations.h"
#include "aha/kernels/core/heads.h"

namespace aha {

struct KernelSet;

struct AttentionInput {
  const Heads* q = nullptr;  // (images, heads, queries, width)
  const Heads* k = nullptr;  // (images, heads, tokens, width)
  const Heads* v = nullptr;
  int64_t images = 0;  // the first so many of them
};

// out: row image * queries + query, heads * width columns. log_sum_exp: (images, heads, queries); null = not
// wanted.
void attention_forward(const KernelSet& kernels, const AttentionInput& input, Activations& out,
                       float* log_sum_exp);

struct AttentionGradient {
  const Heads* dout = nullptr;         // as q
  const float* log_sum_exp = nullptr;  // from the forward
  Activations* dq = nullptr;           // row image * queries + query, from column dq_column
  int64_t dq_column = 0;
  Activations* dk =
      nullptr;  // row image * tokens + token, from column dk_column; may be the same matrix as dq
  int64_t dk_column = 0;
  Activations* dv = nullptr;
  int64_t dv_column = 0;
};
void attention_backward(const KernelSet& kernels, const AttentionInput& input, const AttentionGradient& job);

}  // namespace aha
