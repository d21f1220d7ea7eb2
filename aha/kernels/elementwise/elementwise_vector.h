// GELU and softmax on vectors; the last values of a row go through a padded copy, so that any length gives
// the same value in any place.
#pragma once

#include <cmath>
#include <cstring>

#include "aha/kernels/core/vector.h"

namespace aha {
namespace {

inline void gelu_vector(int64_t n, const float* x, float* y, float* derivative) {
  const auto step = [](const float* in, float* out, float* slope) {
    const Vec v = load(in);
    const GeluParts parts = gelu_parts(v);
    store(out, v * parts.distribution);
    if (slope) store(slope, fma(v * splat(0.39894228f), parts.density_root, parts.distribution));
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) step(x + i, y + i, derivative ? derivative + i : nullptr);
  if (i == n) return;
  const size_t rest = (n - i) * sizeof(float);
  float in[kLanes] = {}, out[kLanes], slope[kLanes];
  std::memcpy(in, x + i, rest);
  step(in, out, slope);
  std::memcpy(y + i, out, rest);
  if (derivative) std::memcpy(derivative + i, slope, rest);
}

// p = e^(p - max) for `columns` values, a multiple of kLanes; gives the maximum and the sum.
struct RowSum {
  float maximum, sum;
};
inline RowSum exponentials_of_row(float* p, int64_t columns) {
  Vec highest = load(p);
  for (int64_t j = kLanes; j < columns; j += kLanes) highest = max(highest, load(p + j));
  const float maximum = reduce_max(highest);
  const Vec shift = splat(maximum);
  Vec total{};
  for (int64_t j = 0; j < columns; j += kLanes) {
    const Vec e = exponential(load(p + j) - shift);
    store(p + j, e);
    total = total + e;
  }
  return {maximum, reduce_add(total)};
}

// p = exp(p - log_sum): softmax where the logarithm of its sum is known. columns: a multiple of the lanes.
inline void weights_of_row(float* p, int64_t columns, float log_sum) {
  const Vec shift = splat(log_sum);
  for (int64_t j = 0; j < columns; j += kLanes) store(p + j, exponential(load(p + j) - shift));
}

// Scores p and gradients d = dP of a row -> weights P = e^(p - log_sum) and dS = P (d - sum(P d)).
inline void weigh_row(float* p, float* d, int64_t columns, float log_sum) {
  const Vec shift = splat(log_sum);
  Vec total{};
  for (int64_t j = 0; j < columns; j += kLanes) {
    const Vec e = exponential(load(p + j) - shift);
    store(p + j, e);
    total = fma(e, load(d + j), total);
  }
  const Vec mean = splat(reduce_add(total));
  for (int64_t j = 0; j < columns; j += kLanes) store(d + j, load(p + j) * (load(d + j) - mean));
}

constexpr float kNoWeight = -1e30f;  // a score whose exponential vanishes beside any other

inline void softmax_rows_vector(int64_t rows, int64_t columns, float* x, int64_t stride, float* log_sum_exp) {
  static thread_local AlignedBuffer<float> scratch;
  const int64_t padded = rounded_to_panel(columns);
  float* row = scratch.at_least(padded);
  for (int64_t r = 0; r < rows; ++r, x += stride) {
    std::memcpy(row, x, columns * sizeof(float));
    for (int64_t j = columns; j < padded; ++j) row[j] = kNoWeight;
    const RowSum found = exponentials_of_row(row, padded);
    const float scale = 1.0f / found.sum;
    for (int64_t j = 0; j < columns; ++j) x[j] = row[j] * scale;
    if (log_sum_exp) log_sum_exp[r] = found.maximum + std::log(found.sum);
  }
}

}  // namespace
}  // namespace aha
