#include "aha/kernels/elementwise/elementwise.h"

#include "aha/base/error.h"
#include "aha/kernels/kernel_set.h"

namespace aha {

void gelu(const KernelSet& kernels, int64_t n, const float* x, float* y, float* derivative) {
  kernels.gelu(n, x, y, derivative);
}

void softmax_rows(const KernelSet& kernels, int64_t rows, int64_t columns, float* x, int64_t stride,
                  float* log_sum_exp) {
  if (columns < 1) throw input_error("softmax: expected at least one column, found {}", columns);
  kernels.softmax_rows(rows, columns, x, stride, log_sum_exp);
}

}  // namespace aha
