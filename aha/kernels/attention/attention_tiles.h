// Attention on bf16 operands in tiles, 32 queries at a time; Hardware multiplies them (small_gemm.h).
// Scores, weights and their gradients are float32 between the GEMMs; a pair splits them again before each
// GEMM.
//
// A right operand is read in pairs of rows ("interleaved"): keys transposed for q k^T, values as they lie for
// P v. In the backward pass dk and dv come out transposed, dk^T = q^T dS, because interleaving dS is cheaper
// than transposing it.
#pragma once

#include <cmath>
#include <cstring>

#include "aha/kernels/attention/attention.h"
#include "aha/kernels/core/panels.h"
#include "aha/kernels/core/transpose_vector.h"
#include "aha/kernels/elementwise/elementwise_vector.h"
#include "aha/kernels/gemm/small_gemm.h"

namespace aha {
namespace {

// (tokens x width) -> right operand of its transpose: [token / 16][width / 32] tiles
inline void interleave_transposed(const Bf16* x, int64_t tokens, int64_t width, Bf16* tiles) {
  for (int64_t t = 0; t < tokens; t += 16)
    for (int64_t c = 0; c < width; c += 32, tiles += kTileElements)
      transpose_16x16(x + t * width + c, width * 2, tiles);
}

// Scratch of one thread, all in the second level cache: 0.7 MB for 197 tokens of width 64.
struct TileScratch {
  AlignedBuffer<Bf16> keys, values, key_rows, value_rows, query_rows, gradient_rows, query_columns,
      gradient_columns, weights, d_scores, weight_tiles, d_score_tiles;
  AlignedBuffer<float> scores, d_weights, sums, transposed;
};
inline TileScratch& tile_scratch() {
  static thread_local TileScratch scratch;
  return scratch;
}

template <class Hardware, class Form>
class AttentionTiles {
 public:
  explicit AttentionTiles(const AttentionInput& input)
      : in_(input), queries_(input.q->tokens()), tokens_(input.k->tokens()), width_(input.q->width()) {}

  void forward(const AttentionPart& part, Activations& out, float* log_sum_exp) {
    const int64_t image = part.image, head = part.head;
    const PanelsOf<Form> to(out);
    Bf16* keys = scratch_.keys.at_least(size(kTokens, kWidth));
    Bf16* values = scratch_.value_rows.at_least(size(kTokens, kWidth));
    Bf16* weights = scratch_.weights.at_least(size(kBlock, kTokens));
    float* scores = scratch_.scores.at_least(kPanel * padded_);
    float* sums = scratch_.sums.at_least(kPanel * width_);
    Hardware::begin();
    const Tiles q = rows_of(*in_.q, image, head);
    each_plane(*in_.k, image, head, [&](const Bf16* from, int plane) {
      interleave_transposed(from, padded_, width_, keys + plane * padded_ * width_);
    });
    each_plane(*in_.v, image, head, [&](const Bf16* from, int plane) {
      interleave(from, padded_, width_, values + plane * padded_ * width_);
    });
    for (int64_t t = part.first_query; t < part.end_query; t += kPanel) {
      const int64_t live = part.end_query - t < kPanel ? part.end_query - t : kPanel;
      const int64_t row_tiles = (live + 15) / 16;
      multiply_small<Hardware, kPlanes>(row_tiles, column_tiles(), width_ / 32, moved(q, t * width_),
                                        transposed_tiles(keys), scores, padded_);
      float scale[kPanel];
      for (int64_t r = 0; r < live; ++r) {
        float* row = scores + r * padded_;
        for (int64_t j = tokens_; j < padded_; ++j) row[j] = kNoWeight;
        const RowSum found = exponentials_of_row(row, padded_);
        scale[r] = 1.0f / found.sum;
        if (log_sum_exp)
          log_sum_exp[(image * in_.q->heads() + head) * queries_ + t + r] =
              found.maximum + std::log(found.sum);
        for (int64_t j = 0; j < padded_; j += kPanel)
          Form::put(weights + r * padded_ + j, kPanel * padded_, load_panel(row + j));
      }
      multiply_small<Hardware, kPlanes>(row_tiles, width_ / 16, padded_ / 32, block_rows(weights),
                                        row_tiles_of(values), sums, width_);
      for (int64_t r = 0; r < live; ++r)
        for (int64_t c = 0; c < width_; c += kPanel)
          to.put(image * queries_ + t + r, (head * width_ + c) / kPanel,
                 load_panel(sums + r * width_ + c) * splat(scale[r]));
    }
    Hardware::end();
  }

  void backward(int64_t image, int64_t head, const AttentionGradient& job) {
    reserve_backward();
    Hardware::begin();
    prepare_operands(*job.dout, image, head);
    for (int64_t t = 0; t < queries_; t += kPanel) backward_of_queries(job, image, head, t);
    store_gemm(back_.query_columns, back_.d_score_tiles, image, *job.dk, job.dk_column + head * width_);
    store_gemm(back_.gradient_columns, back_.weight_tiles, image, *job.dv, job.dv_column + head * width_);
    Hardware::end();
  }

  void weights(int64_t head, const AttentionWeights& job) {
    const int64_t heads = in_.q->heads(), to = head * job.queries * tokens_;
    const float* log_sum = job.log_sum_exp + (job.image * heads + head) * queries_;
    Hardware::begin();
    multiply_rows(job, *in_.q, *in_.k, head, job.weights + to,
                  [&](float* row, int64_t query) { weights_of_row(row, padded_, log_sum[query]); });
    if (job.dout) multiply_rows(job, *job.dout, *in_.v, head, job.d_weights + to, [](float*, int64_t) {});
    Hardware::end();
  }

 private:
  static constexpr int kPlanes = Form::kPlanes;
  enum Side { kTokens, kWidth, kBlock };
  int64_t side(Side s) const { return s == kTokens ? padded_ : s == kWidth ? width_ : kPanel; }
  int64_t size(Side rows, Side columns) const { return kPlanes * side(rows) * side(columns); }
  int64_t column_tiles() const { return (tokens_ + 15) / 16; }
  int64_t query_steps() const { return padded_queries_ / 32; }
  int64_t query_size() const { return padded_queries_ * width_; }
  int64_t score_size() const { return padded_queries_ * padded_; }

  template <class Body>
  void each_plane(const Heads& heads, int64_t image, int64_t head, const Body& body) const {
    for (int plane = 0; plane < kPlanes; ++plane)
      body(heads.bf16() + heads.offset(image, head) + plane * heads.plane(), plane);
  }
  Tiles rows_of(const Heads& heads, int64_t image, int64_t head) const {
    return {heads.bf16() + heads.offset(image, head), 16 * width_, 32, width_ * 2, heads.plane()};
  }
  static Tiles moved(Tiles tiles, int64_t elements) {
    tiles.data += elements;
    return tiles;
  }
  Tiles transposed_tiles(const Bf16* data) const {
    return {data, width_ / 32 * kTileElements, kTileElements, 64, padded_ * width_};
  }
  Tiles row_tiles_of(const Bf16* data) const {
    return {data, kTileElements, width_ / 16 * kTileElements, 64, padded_ * width_};
  }
  Tiles block_rows(const Bf16* data) const { return {data, 16 * padded_, 32, padded_ * 2, kPanel * padded_}; }

  // to (queries, tokens) = finish(a b^T) of one head
  template <class Finish>
  void multiply_rows(const AttentionWeights& job, const Heads& a, const Heads& b, int64_t head, float* to,
                     const Finish& finish) {
    Bf16* columns = scratch_.keys.at_least(size(kTokens, kWidth));
    float* rows = scratch_.scores.at_least(kPanel * padded_);
    each_plane(b, job.image, head, [&](const Bf16* from, int plane) {
      interleave_transposed(from, padded_, width_, columns + plane * padded_ * width_);
    });
    for (int64_t t = 0; t < job.queries; t += kPanel) {
      const int64_t live = job.queries - t < kPanel ? job.queries - t : kPanel;
      multiply_small<Hardware, kPlanes>((live + 15) / 16, column_tiles(), width_ / 32,
                                        moved(rows_of(a, job.image, head), t * width_),
                                        transposed_tiles(columns), rows, padded_);
      for (int64_t r = 0; r < live; ++r) {
        finish(rows + r * padded_, t + r);
        std::memcpy(to + (t + r) * tokens_, rows + r * padded_, tokens_ * sizeof(float));
      }
    }
  }

  // The backward pass in the scratch buffers: the operands of one head, then P and dS of all its queries.
  void reserve_backward() {
    back_.keys = scratch_.keys.at_least(size(kTokens, kWidth));
    back_.values = scratch_.values.at_least(size(kTokens, kWidth));
    back_.key_rows = scratch_.key_rows.at_least(size(kTokens, kWidth));
    back_.query_rows = scratch_.query_rows.at_least(query_size());
    back_.query_columns = scratch_.query_columns.at_least(kPlanes * query_size());
    back_.gradient_columns = scratch_.gradient_columns.at_least(kPlanes * query_size());
    back_.d_scores = scratch_.d_scores.at_least(size(kBlock, kTokens));
    back_.weight_tiles = scratch_.weight_tiles.at_least(kPlanes * score_size());
    back_.d_score_tiles = scratch_.d_score_tiles.at_least(kPlanes * score_size());
    back_.scores = scratch_.scores.at_least(kPanel * padded_);
    back_.d_weights = scratch_.d_weights.at_least(kPanel * padded_);
    back_.sums = scratch_.sums.at_least(kPanel * width_);
    back_.transposed = scratch_.transposed.at_least(width_ * padded_);
  }

  void prepare_operands(const Heads& dout, int64_t image, int64_t head) const {
    const int64_t token_size = padded_ * width_;
    each_plane(*in_.k, image, head, [&](const Bf16* from, int plane) {
      interleave_transposed(from, padded_, width_, back_.keys + plane * token_size);
      interleave(from, padded_, width_, back_.key_rows + plane * token_size);
    });
    each_plane(*in_.v, image, head, [&](const Bf16* from, int plane) {
      interleave_transposed(from, padded_, width_, back_.values + plane * token_size);
    });
    each_plane(*in_.q, image, head, [&](const Bf16* from, int plane) {
      columns_of(from, back_.query_columns + plane * query_size());
    });
    each_plane(dout, image, head, [&](const Bf16* from, int plane) {
      columns_of(from, back_.gradient_columns + plane * query_size());
    });
  }

  // Left operand x^T: [width / 16][query / 32] tiles of 16 columns by 32 queries
  void columns_of(const Bf16* from, Bf16* to) const {
    interleave(from, padded_queries_, width_, back_.query_rows);
    for (int64_t step = 0; step < query_steps(); ++step)
      for (int64_t c = 0; c < width_ / 16; ++c)
        transpose_16x16(back_.query_rows + (step * (width_ / 16) + c) * kTileElements, 64,
                        to + (c * query_steps() + step) * kTileElements);
  }

  // P, dS and dq of the 32 queries from t on.
  void backward_of_queries(const AttentionGradient& job, int64_t image, int64_t head, int64_t t) const {
    const int64_t live = queries_ - t < kPanel ? queries_ - t : kPanel, row_tiles = (live + 15) / 16;
    const float* log_sum = job.log_sum_exp + (image * in_.q->heads() + head) * queries_ + t;
    multiply_small<Hardware, kPlanes>(row_tiles, column_tiles(), width_ / 32,
                                      moved(rows_of(*in_.q, image, head), t * width_),
                                      transposed_tiles(back_.keys), back_.scores, padded_);
    multiply_small<Hardware, kPlanes>(row_tiles, column_tiles(), width_ / 32,
                                      moved(rows_of(*job.dout, image, head), t * width_),
                                      transposed_tiles(back_.values), back_.d_weights, padded_);
    for (int64_t r = 0; r < kPanel; ++r) {
      float *p = back_.scores + r * padded_, *d = back_.d_weights + r * padded_;
      if (r < live) {
        weigh(p, d, log_sum[r]);
      } else {
        for (int64_t j = 0; j < padded_; ++j) p[j] = d[j] = 0;
      }
      for (int64_t j = 0; j < padded_; j += kPanel)
        Form::put(back_.d_scores + r * padded_ + j, kPanel * padded_, load_panel(d + j));
    }
    const int64_t step = t / 32 * column_tiles() * kTileElements;
    interleave_rows(back_.scores, back_.weight_tiles + step, score_size());
    interleave_rows(back_.d_weights, back_.d_score_tiles + step, score_size());
    multiply_small<Hardware, kPlanes>(row_tiles, width_ / 16, padded_ / 32, block_rows(back_.d_scores),
                                      row_tiles_of(back_.key_rows), back_.sums, width_);
    const PanelsOf<Form> dq(*job.dq);
    for (int64_t r = 0; r < live; ++r)
      for (int64_t c = 0; c < width_; c += kPanel)
        dq.put(image * queries_ + t + r, (job.dq_column + head * width_ + c) / kPanel,
               load_panel(back_.sums + r * width_ + c));
  }

  // to[token, column...] = (left right)^T: dk = (q^T dS)^T, dv = (dout^T P)^T of one head
  void store_gemm(const Bf16* left, const Bf16* right, int64_t image, const Activations& to,
                  int64_t column) const {
    multiply_small<Hardware, kPlanes>(
        width_ / 16, column_tiles(), query_steps(),
        {left, query_steps() * kTileElements, kTileElements, 64, query_size()},
        {right, kTileElements, column_tiles() * kTileElements, 64, score_size()}, back_.transposed, padded_);
    const PanelsOf<Form> panels(to);
    for (int64_t t = 0; t < tokens_; t += 16)
      for (int64_t c = 0; c < width_; c += kPanel) {
        alignas(64) float first[256], second[256];
        transpose_16x16(back_.transposed + c * padded_ + t, padded_ * 4, first);
        transpose_16x16(back_.transposed + (c + 16) * padded_ + t, padded_ * 4, second);
        for (int64_t r = 0; r < 16 && t + r < tokens_; ++r)
          panels.put(image * tokens_ + t + r, (column + c) / kPanel,
                     {{load(first + r * 16), load(second + r * 16)}});
      }
  }

  // Scores p and gradients d of one row -> weights P and dS; both zero beyond the last token.
  void weigh(float* p, float* d, float log_sum) const {
    for (int64_t j = tokens_; j < padded_; ++j) p[j] = kNoWeight, d[j] = 0;
    weigh_row(p, d, padded_, log_sum);
    for (int64_t j = tokens_; j < padded_; ++j) p[j] = d[j] = 0;
  }

  // 32 rows of floats -> right operand of one step: [token / 16] tiles, low parts `plane` elements later
  void interleave_rows(const float* rows, Bf16* tiles, int64_t plane) const {
    const auto put = [](Bf16* to, __m512i both) {
      _mm512_store_si512(to, interleaved(_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1)));
    };
    for (int64_t n = 0; n < column_tiles(); ++n)
      for (int64_t pair = 0; pair < 16; ++pair) {
        const Vec even = load(rows + 2 * pair * padded_ + n * 16),
                  odd = load(rows + (2 * pair + 1) * padded_ + n * 16);
        const __m512i high = Hardware::narrowed(even, odd);
        Bf16* to = tiles + n * kTileElements + pair * 32;
        put(to, high);
        if constexpr (kPlanes == 2) {
          const Panel rounded = widened(high);
          put(to + plane, Hardware::narrowed(even - rounded.v[0], odd - rounded.v[1]));
        }
      }
  }

  AttentionInput in_;
  int64_t queries_, tokens_, width_;
  int64_t padded_ = rounded_to_panel(tokens_), padded_queries_ = rounded_to_panel(queries_);
  TileScratch& scratch_ = tile_scratch();
  struct {
    Bf16 *keys, *values, *key_rows, *query_rows, *query_columns, *gradient_columns, *d_scores, *weight_tiles,
        *d_score_tiles;
    float *scores, *d_weights, *sums, *transposed;
  } back_{};  // into scratch_
};

template <class Hardware, class Form>
void attention_forward_tiles(const AttentionInput& input, const AttentionPart& part, Activations& out,
                             float* log_sum_exp) {
  AttentionTiles<Hardware, Form>(input).forward(part, out, log_sum_exp);
}

template <class Hardware, class Form>
void attention_backward_tiles(const AttentionInput& input, int64_t image, int64_t head,
                              const AttentionGradient& job) {
  AttentionTiles<Hardware, Form>(input).backward(image, head, job);
}

template <class Hardware, class Form>
void attention_weights_tiles(const AttentionInput& input, int64_t head, const AttentionWeights& job) {
  AttentionTiles<Hardware, Form>(input).weights(head, job);
}

}  // namespace
}  // namespace aha
