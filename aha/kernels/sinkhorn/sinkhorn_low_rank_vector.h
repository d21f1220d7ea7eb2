// The low-rank path: matrix-vector work with the factors of exp(L), one instance for each rank.
#pragma once

#include "aha/kernels/sinkhorn/sinkhorn_loops.h"
#include "aha/kernels/sinkhorn/sinkhorn_math.h"

namespace aha {
namespace {

void low_rank_rows(const double* slope, const double* most, int32_t K, int32_t ld, const double* nodes,
                   const double* column, int32_t rank, float* factor) {
  for (int32_t n = 0; n < rank; ++n) {
    float* row = factor + static_cast<int64_t>(n) * ld;
    for (int32_t i = 0; i < K; ++i) row[i] = static_cast<float>(slope[i] * nodes[n] + column[n] - most[i]);
    for (int32_t i = 0; i < ld; i += kLanes) store(row + i, first_lanes(exp_of(load(row + i)), K - i));
  }
}

template <int R>
inline Vec combination(const float* F, int32_t ld, const float* m) {
  Vec even{}, odd{};
#pragma GCC unroll 48
  for (int n = 0; n < R; ++n) (n % 2 ? odd : even) += load(F + static_cast<int64_t>(n) * ld) * m[n];
  return even + odd;
}

template <int R>
inline void add_products(const float* F, int32_t ld, Vec w, Vec (&sums)[R]) {
#pragma GCC unroll 48
  for (int n = 0; n < R; ++n) sums[n] += load(F + static_cast<int64_t>(n) * ld) * w;
}

template <int R>
void half_step(const float* F, int32_t K, int32_t ld, const float* m, float* out, float* next) {
  Vec sums[R] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const Vec w = first_lanes(1 / combination<R>(F + j, ld, m), K - j);
    store(out + j, w);
    add_products(F + j, ld, w, sums);
  }
  write_sums(sums, next);
}

template <int R>
void combine(const float* F, int32_t ld, int32_t begin, int32_t end, const float* m, float* out) {
  for (int32_t j = begin; j < end; j += kLanes) store(out + j, combination<R>(F + j, ld, m));
}

template <int R>
void moments(const float* F, int32_t ld, int32_t begin, int32_t end, const float* w, float* m) {
  Vec sums[R] = {};
  for (int32_t j = begin; j < end; j += kLanes)
    add_products(F + j, ld, first_lanes(load(w + j), end - j), sums);
  write_sums(sums, m);
}

template <int R>
void low_rank_masks_backward(const float* F, int32_t ld, const float* nodes, const float* m,
                             const float* coefficient, float* value, float* slope, float* back) {
  float node_m[R];
  for (int n = 0; n < R; ++n) node_m[n] = nodes[n] * m[n];
  Vec sums[R] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const Vec c = load(coefficient + j);
    store(value + j, load(value + j) + c * combination<R>(F + j, ld, m));
    store(slope + j, load(slope + j) + c * combination<R>(F + j, ld, node_m));
    add_products(F + j, ld, c, sums);
  }
  write_sums(sums, back);
}

template <int R>
void rows_backward(const float* F, int32_t ld, const float* nodes, const float* u, const float* m_v,
                   const float* m_grad, float* grad, float* back) {
  float node_grad[R], node_v[R];
  for (int n = 0; n < R; ++n) {
    node_grad[n] = nodes[n] * m_grad[n];
    node_v[n] = nodes[n] * m_v[n];
  }
  Vec sums[R] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    Vec dot{}, dot_p{}, mean{};
#pragma GCC unroll 48
    for (int n = 0; n < R; ++n) {
      const Vec f = load(F + static_cast<int64_t>(n) * ld + j);
      dot += f * m_grad[n];
      dot_p += f * node_grad[n];
      mean += f * node_v[n];
    }
    const Vec x = load(u + j), r_grad = -dot * x * x;
    store(grad + j, load(grad + j) + x * dot_p + r_grad * mean);
    add_products(F + j, ld, r_grad, sums);
  }
  write_sums(sums, back);
}

template <int R>
void columns_backward(const float* F, int32_t ld, const float* v, const float* back, float* m_grad) {
  Vec sums[R] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const Vec x = load(v + j);
    add_products(F + j, ld, -combination<R>(F + j, ld, back) * x * x, sums);
  }
  write_sums(sums, m_grad);
}

template <int R>
constexpr LowRankLoops low_rank_loops(double steepest) {
  return {R,
          steepest,
          half_step<R>,
          combine<R>,
          moments<R>,
          low_rank_masks_backward<R>,
          rows_backward<R>,
          columns_backward<R>};
}

// Steepness at which Chebyshev interpolation of exp(b x - g x^2), 0 <= g <= b / 2, |x| <= 1, loses 3e-8 of
// its largest value.
constexpr LowRankLoops kLowRank[] = {low_rank_loops<12>(1.0),   low_rank_loops<16>(3.25),
                                     low_rank_loops<20>(6.75),  low_rank_loops<24>(11.5),
                                     low_rank_loops<32>(24.25), low_rank_loops<48>(63.0)};

}  // namespace
}  // namespace aha
