// Layer normalization on panels: two passes over a row for the moments (the row stays in the first level
// cache), one to write it.
#pragma once

#include <cmath>

#include "aha/kernels/core/panels.h"
#include "aha/kernels/layer_norm/layer_norm.h"

namespace aha {
namespace {

inline float sum_of(const Panel& s) {
  Vec total = s.v[0];
  for (int i = 1; i < kVecs; ++i) total = total + s.v[i];
  return reduce_add(total);
}

template <class Form>
void layer_norm_panels(int64_t first, int64_t end, const float* x, int64_t stride, float epsilon,
                       Activations& xhat, float* rstd) {
  const PanelsOf<Form> out(xhat);
  const int64_t panels = xhat.panels();
  const float per_column = 1.0f / static_cast<float>(xhat.columns());
  x += first * stride;
  for (int64_t row = first; row < end; ++row, x += stride) {
    Panel total{};
    for (int64_t s = 0; s < panels; ++s) total = total + load_panel(x + s * kPanel);
    const Vec mean = splat(sum_of(total) * per_column);
    Panel squares{};
    for (int64_t s = 0; s < panels; ++s) {
      const Panel values = load_panel(x + s * kPanel);
      for (int i = 0; i < kVecs; ++i) {
        const Vec d = values.v[i] - mean;
        squares.v[i] = fma(d, d, squares.v[i]);
      }
    }
    const float scale = 1.0f / std::sqrt(sum_of(squares) * per_column + epsilon);
    if (rstd) rstd[row] = scale;
    const Vec factor = splat(scale);
    for (int64_t s = 0; s < panels; ++s) {
      Panel values = load_panel(x + s * kPanel);
      for (int i = 0; i < kVecs; ++i) values.v[i] = (values.v[i] - mean) * factor;
      out.put(row, s, values);
    }
  }
}

template <class Form>
void layer_norm_backward_panels(int64_t first, int64_t end, const LayerNormGradient& job) {
  const PanelsOf<Form> xhat(*job.xhat), operand(job.dx_operand ? *job.dx_operand : *job.xhat);
  const int64_t panels = job.xhat->panels();
  const float per_column = 1.0f / static_cast<float>(job.xhat->columns());
  for (int64_t row = first; row < end; ++row) {
    const float* g = job.gradient + row * job.gradient_stride;
    float* dx = job.dx + row * job.dx_stride;
    Panel sums{}, products{};
    for (int64_t s = 0; s < panels; ++s) {
      const Panel gradient = load_panel(g + s * kPanel), values = xhat.get(row, s);
      for (int i = 0; i < kVecs; ++i) {
        sums.v[i] = sums.v[i] + gradient.v[i];
        products.v[i] = fma(gradient.v[i], values.v[i], products.v[i]);
      }
    }
    const Vec mean = splat(sum_of(sums) * per_column), slope = splat(sum_of(products) * per_column);
    const Vec scale = splat(job.rstd[row]);
    for (int64_t s = 0; s < panels; ++s) {
      const Panel gradient = load_panel(g + s * kPanel), values = xhat.get(row, s);
      Panel sum = load_panel(dx + s * kPanel);
      for (int i = 0; i < kVecs; ++i)
        sum.v[i] = fma(fnma(values.v[i], slope, gradient.v[i] - mean), scale, sum.v[i]);
      store_panel(dx + s * kPanel, sum);
      if (job.dx_operand) operand.put(row, s, sum);
    }
  }
}

}  // namespace
}  // namespace aha
