// The dense path: sweeps over the matrix, forward and backward.
#pragma once

#include <string.h>

#include "aha/kernels/sinkhorn/sinkhorn_loops.h"
#include "aha/kernels/sinkhorn/sinkhorn_math.h"

namespace aha {
namespace {

// Rows that are swept together while they are in the first-level cache: 8 x 3 KB at K = 784. The reverse
// sweep keeps three sums a row.
constexpr int kRows = 8;
constexpr int kRowsBackward = kLanes == 16 ? 8 : 4;

template <int N>
inline void sweep_rows(const float* rows, int32_t ld, const float* v, float* u, float* column_sum) {
  Vec dot[N] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const Vec x = load(v + j);
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r) dot[r] += load(rows + static_cast<int64_t>(r) * ld + j) * x;
  }
  float sums[N];
  write_sums(dot, sums);
  for (int r = 0; r < N; ++r) u[r] = 1 / sums[r];
  Vec scale[N];
  for (int r = 0; r < N; ++r) scale[r] = splat(u[r]);
  for (int32_t j = 0; j < ld; j += kLanes) {
    Vec even = load(column_sum + j), odd{};
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r)
      (r % 2 ? odd : even) += load(rows + static_cast<int64_t>(r) * ld + j) * scale[r];
    store(column_sum + j, even + odd);
  }
}

bool sweep(const float* kernel, int32_t K, int32_t ld, const float* v, float* u, float* v_next) {
  memset(v_next, 0, ld * sizeof(float));
  int32_t i = 0;
  for (; i + kRows <= K; i += kRows)
    sweep_rows<kRows>(kernel + static_cast<int64_t>(i) * ld, ld, v, u + i, v_next);
  for (; i < K; ++i) sweep_rows<1>(kernel + static_cast<int64_t>(i) * ld, ld, v, u + i, v_next);
  IntVec bad{};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const IntVec inside = lane_numbers() < splat_int(K - j);
    const Vec x = (Vec)((IntVec)(1 / load(v_next + j)) & inside), y = load(u + j);
    store(v_next + j, x);
    const Vec low = splat(1e-12f), high = splat(1e12f);
    bad |= inside & ~((x >= low) & (x <= high) & (y >= low) & (y <= high));
  }
  int32_t any = 0;
  for (int l = 0; l < kLanes; ++l) any |= bad[l];
  return any == 0;
}

void masks(const float* kernel, int32_t K, int32_t ld, const float* v, const int32_t* ends, int32_t segments,
           float* u, float* masks, float* column_sum) {
  memset(column_sum, 0, ld * sizeof(float));
  for (int32_t i = 0; i < K; ++i) {
    const float* row = kernel + static_cast<int64_t>(i) * ld;
    float before = 0;
    int32_t j = 0;
    for (int32_t s = 0; s < segments; ++s) {
      Vec dot{};
      for (; j + kLanes <= ends[s]; j += kLanes) dot += load(row + j) * load(v + j);
      if (j < ends[s]) dot += first_lanes(load(row + j) * load(v + j), ends[s] - j);
      j = ends[s];
      before += reduce_add(dot);
      if (s + 1 < segments) masks[static_cast<int64_t>(s) * K + i] = before;
    }
    u[i] = 1 / before;
    for (int32_t s = 0; s + 1 < segments; ++s)
      masks[static_cast<int64_t>(s) * K + i] /= before;  // never above one
    const Vec scale = splat(u[i]);
    for (j = 0; j < ld; j += kLanes)
      store(column_sum + j, load(column_sum + j) + scale * load(row + j) * load(v + j));
  }
}

void masks_backward(const float* kernel, int32_t K, int32_t ld, const float* v, const float* position,
                    const int32_t* ends, int32_t segments, const float* u, const float* mask_grad,
                    float* scratch, float* grad, float* v_grad) {
  float* coefficient = scratch;  // (ld) dP_ij of this row, spread over its segments
  float* plan_grad =
      scratch + ld + 16;  // (segments) the same, one per segment; `coefficient` is written in whole vectors
  float* value = plan_grad + segments;  // (segments) sum of P
  float* slope = value + segments;      // (segments) sum of P p
  memset(v_grad, 0, ld * sizeof(float));
  for (int32_t i = 0; i < K; ++i) {
    const float* row = kernel + static_cast<int64_t>(i) * ld;
    plan_grad[segments - 1] = 0;
    for (int32_t s = segments - 2; s >= 0; --s)
      plan_grad[s] = plan_grad[s + 1] + mask_grad[static_cast<int64_t>(s) * K + i];
    int32_t j = 0, heaviest = 0;
    for (int32_t s = 0; s < segments; ++s) {
      Vec dot{}, dot_p{};
      for (; j < ends[s]; j += kLanes) {
        const Vec kv = first_lanes(load(row + j) * load(v + j), ends[s] - j);
        dot += kv;
        dot_p += kv * load(position + j);
      }
      j = ends[s];
      value[s] = reduce_add(dot) * u[i];
      slope[s] = reduce_add(dot_p) * u[i];
      if (value[s] > value[heaviest]) heaviest = s;
    }
    // The closing row normalization takes the mean out of the row's gradient. Measured from the heaviest
    // segment, so that a nearly hard row keeps the little that is left.
    const float base = plan_grad[heaviest];
    float mean = 0;
    for (int32_t s = 0; s < segments; ++s) mean += (plan_grad[s] - base) * value[s];
    grad[i] = 0;
    j = 0;
    for (int32_t s = 0; s < segments; ++s) {
      const float g = (plan_grad[s] - base) - mean;
      grad[i] += g * slope[s];
      for (; j < ends[s]; j += kLanes) store(coefficient + j, splat(g * u[i]));
      j = ends[s];
    }
    for (j = 0; j < ld; j += kLanes)
      store(v_grad + j, load(v_grad + j) + load(coefficient + j) * load(row + j));
  }
}

template <int N>
inline void sweep_rows_backward(const float* rows, int32_t ld, const float* c_grad, const float* c_grad_p,
                                const float* v_p, const float* u, float* grad, float* v_grad) {
  Vec dot[N] = {}, dot_p[N] = {}, mean[N] = {};
  for (int32_t j = 0; j < ld; j += kLanes) {
    const Vec c = load(c_grad + j), cp = load(c_grad_p + j), vp = load(v_p + j);
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r) {
      const Vec k = load(rows + static_cast<int64_t>(r) * ld + j);
      dot[r] += k * c;
      dot_p[r] += k * cp;
      mean[r] += k * vp;
    }
  }
  float sums[N], sums_p[N], means[N], r_grad[N];
  write_sums(dot, sums);
  write_sums(dot_p, sums_p);
  write_sums(mean, means);
  for (int r = 0; r < N; ++r) {
    r_grad[r] = -sums[r] * u[r] * u[r];
    grad[r] += u[r] * sums_p[r] + r_grad[r] * means[r];
  }
  Vec scale[N];
  for (int r = 0; r < N; ++r) scale[r] = splat(r_grad[r]);
  for (int32_t j = 0; j < ld; j += kLanes) {
    Vec even = load(v_grad + j), odd{};
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r)
      (r % 2 ? odd : even) += load(rows + static_cast<int64_t>(r) * ld + j) * scale[r];
    store(v_grad + j, even + odd);
  }
}

void sweep_backward(const float* kernel, int32_t K, int32_t ld, const float* v_scale, const float* u,
                    const float* v, const float* position, float* scratch, float* grad, float* v_grad) {
  float *c_grad = scratch, *c_grad_p = scratch + ld, *v_p = scratch + 2 * ld;
  for (int32_t j = 0; j < ld; j += kLanes) {
    const Vec c = -load(v_grad + j) * load(v_scale + j), p = load(position + j);
    store(c_grad + j, c);
    store(c_grad_p + j, c * p);
    store(v_p + j, load(v + j) * p);
    store(v_grad + j, Vec{});
  }
  int32_t i = 0;
  for (; i + kRowsBackward <= K; i += kRowsBackward)
    sweep_rows_backward<kRowsBackward>(kernel + static_cast<int64_t>(i) * ld, ld, c_grad, c_grad_p, v_p,
                                       u + i, grad + i, v_grad);
  for (; i < K; ++i)
    sweep_rows_backward<1>(kernel + static_cast<int64_t>(i) * ld, ld, c_grad, c_grad_p, v_p, u + i, grad + i,
                           v_grad);
}

void first_backward(const float* kernel, int32_t K, int32_t ld, const float* v_scale, const float* position,
                    const float* row_mean, const float* v_grad, float* grad) {
  for (int32_t i = 0; i < K; ++i) {
    const float* row = kernel + static_cast<int64_t>(i) * ld;
    const Vec mean = splat(row_mean[i]);
    Vec dot{};
    for (int32_t j = 0; j < ld; j += kLanes)
      dot += load(row + j) * load(v_grad + j) * load(v_scale + j) * (mean - load(position + j));
    grad[i] += reduce_add(dot);
  }
}

}  // namespace
}  // namespace aha
