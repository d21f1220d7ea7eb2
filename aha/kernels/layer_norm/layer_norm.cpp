#include "aha/kernels/layer_norm/layer_norm.h"

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

// Waits for memory more than it computes: a value counts for so many operations.
constexpr double kOfAValue = 16;

double operations_of(int64_t rows, const Activations& a) {
  return kOfAValue * static_cast<double>(rows * a.columns());
}

void check(const KernelSet& kernels, int64_t rows, const Activations& a, int64_t stride) {
  if (a.format() != kernels.format || a.rows() < rows || a.columns() % kPanel != 0 || a.columns() == 0 ||
      stride < a.columns())
    throw input_error(
        "layer norm: expected {} rows of a multiple of {} columns in {}, found {} rows of {} columns in {}, "
        "{} apart",
        rows, kPanel, name_of(kernels.format), a.rows(), a.columns(), name_of(a.format()), stride);
}

}  // namespace

void layer_norm(const KernelSet& kernels, int64_t rows, const float* x, int64_t stride, float epsilon,
                Activations& xhat, float* rstd) {
  check(kernels, rows, xhat, stride);
  shared_ranges(rows, 1, operations_of(rows, xhat), [&](int64_t first, int64_t end) {
    kernels.layer_norm(first, end, x, stride, epsilon, xhat, rstd);
  });
}

void layer_norm_backward(const KernelSet& kernels, int64_t rows, const LayerNormGradient& job) {
  check(kernels, rows, *job.xhat, std::min(job.gradient_stride, job.dx_stride));
  if (job.dx_operand) check(kernels, rows, *job.dx_operand, job.xhat->columns());
  shared_ranges(rows, 1, operations_of(rows, *job.xhat),
                [&](int64_t first, int64_t end) { kernels.layer_norm_backward(first, end, job); });
}

}  // namespace aha
