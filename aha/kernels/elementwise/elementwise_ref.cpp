#include <algorithm>
#include <cmath>
#include <numbers>

#include "aha/kernels/sets/kernels_ref.h"

namespace aha {

GeluValue gelu_value(double x) {
  const double distribution = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return {x * distribution, distribution + x * density};
}

void gelu_ref(int64_t n, const float* x, float* y, float* derivative) {
  for (int64_t i = 0; i < n; ++i) {
    const GeluValue gelu = gelu_value(x[i]);
    y[i] = static_cast<float>(gelu.value);
    if (derivative) derivative[i] = static_cast<float>(gelu.derivative);
  }
}

void softmax_rows_ref(int64_t rows, int64_t columns, float* x, int64_t stride, float* log_sum_exp) {
  for (int64_t row = 0; row < rows; ++row, x += stride) {
    const double highest = *std::max_element(x, x + columns);
    double total = 0;
    for (int64_t j = 0; j < columns; ++j) total += std::exp(x[j] - highest);
    for (int64_t j = 0; j < columns; ++j) x[j] = static_cast<float>(std::exp(x[j] - highest) / total);
    if (log_sum_exp) log_sum_exp[row] = static_cast<float>(highest + std::log(total));
  }
}

}  // namespace aha
