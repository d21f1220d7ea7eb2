// GELU and softmax on plain float32 rows.
//
//   gelu(x) = x Phi(x),  gelu'(x) = Phi(x) + x phi(x),  Phi and phi the standard normal's distribution and
//   density
//
// Phi after Abramowitz & Stegun 7.1.26, within 1.5e-7; exp within 2 units in the last place.
#pragma once

#include <cstdint>

namespace aha {

struct KernelSet;

// n values; derivative may be null; y may be x.
void gelu(const KernelSet& kernels, int64_t n, const float* x, float* y, float* derivative);

// softmax of every row of `columns` values, rows `stride` apart, in place. log_sum_exp: one a row; null = not
// wanted.
void softmax_rows(const KernelSet& kernels, int64_t rows, int64_t columns, float* x, int64_t stride,
                  float* log_sum_exp);

}  // namespace aha
