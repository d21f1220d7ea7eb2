// Layer normalisation on strips: two passes over a row for the moments (the row stays in the first level
// cache), one to write it.
#pragma once

#include <cmath>

#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/kernels/core/strips.h"

namespace aha {
namespace {

inline float sum_of(const Strip& s) {
  Vec total = s.v[0];
  for (int i = 1; i < kVecs; ++i) total = total + s.v[i];
  return reduce_add(total);
}

template <class Form>
void layer_norm_strips(int64_t rows, const float* x, int64_t stride, float epsilon, Activations& xhat,
                       float* rstd) {
  const StripsOf<Form> out(xhat);
  const int64_t strips = xhat.strips();
  const float per_column = 1.0f / static_cast<float>(xhat.columns());
  for (int64_t row = 0; row < rows; ++row, x += stride) {
    Strip total{};
    for (int64_t s = 0; s < strips; ++s) total = total + load_strip(x + s * kStrip);
    const Vec mean = splat(sum_of(total) * per_column);
    Strip squares{};
    for (int64_t s = 0; s < strips; ++s) {
      const Strip values = load_strip(x + s * kStrip);
      for (int i = 0; i < kVecs; ++i) {
        const Vec d = values.v[i] - mean;
        squares.v[i] = fma(d, d, squares.v[i]);
      }
    }
    const float scale = 1.0f / std::sqrt(sum_of(squares) * per_column + epsilon);
    if (rstd) rstd[row] = scale;
    const Vec factor = splat(scale);
    for (int64_t s = 0; s < strips; ++s) {
      Strip values = load_strip(x + s * kStrip);
      for (int i = 0; i < kVecs; ++i) values.v[i] = (values.v[i] - mean) * factor;
      out.put(row, s, values);
    }
  }
}

template <class Form>
void layer_norm_backward_strips(int64_t rows, const LayerNormGradient& job) {
  const StripsOf<Form> xhat(*job.xhat), operand(job.dx_operand ? *job.dx_operand : *job.xhat);
  const int64_t strips = job.xhat->strips();
  const float per_column = 1.0f / static_cast<float>(job.xhat->columns());
  for (int64_t row = 0; row < rows; ++row) {
    const float* g = job.gradient + row * job.gradient_stride;
    float* dx = job.dx + row * job.dx_stride;
    Strip sums{}, products{};
    for (int64_t s = 0; s < strips; ++s) {
      const Strip gradient = load_strip(g + s * kStrip), values = xhat.get(row, s);
      for (int i = 0; i < kVecs; ++i) {
        sums.v[i] = sums.v[i] + gradient.v[i];
        products.v[i] = fma(gradient.v[i], values.v[i], products.v[i]);
      }
    }
    const Vec mean = splat(sum_of(sums) * per_column), slope = splat(sum_of(products) * per_column);
    const Vec scale = splat(job.rstd[row]);
    for (int64_t s = 0; s < strips; ++s) {
      const Strip gradient = load_strip(g + s * kStrip), values = xhat.get(row, s);
      Strip sum = load_strip(dx + s * kStrip);
      for (int i = 0; i < kVecs; ++i)
        sum.v[i] = fma(fnma(values.v[i], slope, gradient.v[i] - mean), scale, sum.v[i]);
      store_strip(dx + s * kStrip, sum);
      if (job.dx_operand) operand.put(row, s, sum);
    }
  }
}

}  // namespace
}  // namespace aha
