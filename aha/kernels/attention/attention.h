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

// What one call of a kernel computes: queries of a head of an image, from a multiple of 32 on (any in
// float32).
struct AttentionPart {
  int64_t image = 0, head = 0, first_query = 0, end_query = 0;
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

// P of one image, computed again from the saved log-sum-exp, and dP = dout v^T where a gradient is wanted:
// for those who look at attention.
struct AttentionWeights {
  int64_t image = 0;
  int64_t queries = 0;                 // the first so many
  const float* log_sum_exp = nullptr;  // from the forward, of all images
  float* weights = nullptr;            // (heads, queries, tokens)
  const Heads* dout = nullptr;         // as q; null = no gradient
  float* d_weights = nullptr;          // as weights
};
void attention_weights(const KernelSet& kernels, const AttentionInput& input, const AttentionWeights& job);

}  // namespace aha
