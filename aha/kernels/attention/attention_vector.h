// Attention in vector registers, float32: the scores of a tile of queries stay in the first level cache,
// those of a head (for the backward pass) in the second.
#pragma once

#include <cmath>
#include <cstring>

#include "aha/kernels/attention/attention.h"
#include "aha/kernels/core/transpose_vector.h"
#include "aha/kernels/elementwise/elementwise_vector.h"
#include "aha/kernels/gemm/gemm_vector.h"

namespace aha {
namespace {

struct AttentionScratch {
  AlignedBuffer<float> keys, values, weights, gradients, rows;
};
inline AttentionScratch& attention_scratch() {
  static thread_local AttentionScratch scratch;
  return scratch;
}

// (tokens x width) -> panels of the transpose: [token / 32][width][32]; tokens beyond the last are zero rows
// of x.
inline void transpose_to_panels(const float* x, int64_t padded_tokens, int64_t width, float* panels) {
  for (int64_t t0 = 0; t0 < padded_tokens; t0 += kPanel, panels += width * kPanel)
    for (int64_t c = 0; c < width; c += kLanes)
      for (int64_t t = 0; t < kPanel; t += kLanes) {
        const float* from = x + (t0 + t) * width + c;
        float* to = panels + c * kPanel + t;
#if defined(__AVX512F__)
        transpose_16x16(from, 4 * width, to, 4 * kPanel);
#else
        transpose_8x8(from, to, width);
#endif
      }
}

// scores (rows x padded_tokens) = a (rows x width) times the panels
inline void multiply_panels(int64_t rows, int64_t padded_tokens, int64_t width, const float* a,
                            const float* panels, float* scores) {
  for (int64_t t0 = 0; t0 < padded_tokens; t0 += kPanel, panels += width * kPanel)
    multiply(rows, kPanel, width, {a, width, 1}, panels, kPanel, scores + t0, padded_tokens);
}

inline void attention_forward_f32(const AttentionInput& input, const AttentionPart& part, Activations& out,
                                  float* log_sum_exp) {
  const Heads &q = *input.q, &k = *input.k, &v = *input.v;
  const int64_t image = part.image, head = part.head, queries = q.tokens(), tokens = k.tokens(),
                width = q.width(), padded = rounded_to_panel(tokens);
  AttentionScratch& scratch = attention_scratch();
  float* keys = scratch.keys.at_least(padded * width);
  float* scores = scratch.weights.at_least(kTileRows * padded);
  float* sums = scratch.rows.at_least(kTileRows * width);
  const PanelsOf<FormF32> to(out);
  transpose_to_panels(k.f32() + k.offset(image, head), padded, width, keys);
  const float* value = v.f32() + v.offset(image, head);
  for (int64_t t = part.first_query; t < part.end_query; t += kTileRows) {
    const int64_t height = part.end_query - t < kTileRows ? part.end_query - t : kTileRows;
    multiply_panels(height, padded, width, q.f32() + q.offset(image, head) + t * width, keys, scores);
    float scale[kTileRows];
    for (int64_t r = 0; r < height; ++r) {
      float* row = scores + r * padded;
      for (int64_t j = tokens; j < padded; ++j) row[j] = kNoWeight;
      const RowSum found = exponentials_of_row(row, padded);
      scale[r] = 1.0f / found.sum;
      if (log_sum_exp)
        log_sum_exp[(image * q.heads() + head) * queries + t + r] = found.maximum + std::log(found.sum);
    }
    multiply(height, width, tokens, {scores, padded, 1}, value, width, sums, width);
    for (int64_t r = 0; r < height; ++r)
      for (int64_t c = 0; c < width; c += kPanel)
        to.put(image * queries + t + r, (head * width + c) / kPanel,
               load_panel(sums + r * width + c) * splat(scale[r]));
  }
}

inline void attention_backward_f32(const AttentionInput& input, int64_t image, int64_t head,
                                   const AttentionGradient& job) {
  const Heads &q = *input.q, &k = *input.k, &v = *input.v, &dout = *job.dout;
  const int64_t queries = q.tokens(), tokens = k.tokens(), width = q.width(),
                padded = rounded_to_panel(tokens);
  AttentionScratch& scratch = attention_scratch();
  float* keys = scratch.keys.at_least(padded * width);
  float* values = scratch.values.at_least(padded * width);
  float* weights = scratch.weights.at_least(queries * padded);      // P
  float* gradients = scratch.gradients.at_least(queries * padded);  // dP, then dS
  float* sums = scratch.rows.at_least(kTileRows * width);

  // rows r0... of `to` from column on = a times b
  const auto multiply_into = [&](int64_t rows, int64_t depth, LeftOperand a, const float* b,
                                 const Activations& to, int64_t row0, int64_t column) {
    const PanelsOf<FormF32> panels(to);
    for (int64_t t = 0; t < rows; t += kTileRows) {
      const int64_t height = rows - t < kTileRows ? rows - t : kTileRows;
      multiply(height, width, depth, {a.data + t * a.row, a.row, a.column}, b, width, sums, width);
      for (int64_t r = 0; r < height; ++r)
        for (int64_t c = 0; c < width; c += kPanel)
          panels.put(row0 + t + r, (column + c) / kPanel, load_panel(sums + r * width + c));
    }
  };

  const float* query = q.f32() + q.offset(image, head);
  const float* key = k.f32() + k.offset(image, head);
  const float* gradient = dout.f32() + dout.offset(image, head);
  const float* log_sum = job.log_sum_exp + (image * q.heads() + head) * queries;
  transpose_to_panels(key, padded, width, keys);
  transpose_to_panels(v.f32() + v.offset(image, head), padded, width, values);
  for (int64_t t = 0; t < queries; t += kTileRows) {
    const int64_t height = queries - t < kTileRows ? queries - t : kTileRows;
    multiply_panels(height, padded, width, query + t * width, keys, weights + t * padded);
    multiply_panels(height, padded, width, gradient + t * width, values, gradients + t * padded);
    for (int64_t r = t; r < t + height; ++r) {
      float *p = weights + r * padded, *d = gradients + r * padded;
      for (int64_t j = tokens; j < padded; ++j) p[j] = kNoWeight;
      weigh_row(p, d, padded, log_sum[r]);
    }
  }
  const int64_t column = head * width;
  multiply_into(queries, tokens, {gradients, padded, 1}, key, *job.dq, image * queries,
                job.dq_column + column);
  multiply_into(tokens, queries, {gradients, 1, padded}, query, *job.dk, image * tokens,
                job.dk_column + column);
  multiply_into(tokens, queries, {weights, 1, padded}, gradient, *job.dv, image * tokens,
                job.dv_column + column);
}

inline void attention_weights_f32(const AttentionInput& input, int64_t head, const AttentionWeights& job) {
  const Heads &q = *input.q, &k = *input.k, &v = *input.v;
  const int64_t tokens = k.tokens(), width = q.width(), padded = rounded_to_panel(tokens);
  AttentionScratch& scratch = attention_scratch();
  float* panels = scratch.keys.at_least(padded * width);
  float* rows = scratch.weights.at_least(kTileRows * padded);
  // to (queries, tokens) = finish(a (queries, width) b^T (width, tokens))
  const auto multiply_rows = [&](const float* a, const float* b, float* to, const auto& finish) {
    transpose_to_panels(b, padded, width, panels);
    for (int64_t t = 0; t < job.queries; t += kTileRows) {
      const int64_t height = job.queries - t < kTileRows ? job.queries - t : kTileRows;
      multiply_panels(height, padded, width, a + t * width, panels, rows);
      for (int64_t r = 0; r < height; ++r) {
        finish(rows + r * padded, t + r);
        std::memcpy(to + (t + r) * tokens, rows + r * padded, tokens * sizeof(float));
      }
    }
  };
  const int64_t to = head * job.queries * tokens;
  const float* log_sum = job.log_sum_exp + (job.image * q.heads() + head) * q.tokens();
  multiply_rows(q.f32() + q.offset(job.image, head), k.f32() + k.offset(job.image, head), job.weights + to,
                [&](float* row, int64_t query) { weights_of_row(row, padded, log_sum[query]); });
  if (job.dout)
    multiply_rows(job.dout->f32() + job.dout->offset(job.image, head), v.f32() + v.offset(job.image, head),
                  job.d_weights + to, [](float*, int64_t) {});
}

}  // namespace
}  // namespace aha
