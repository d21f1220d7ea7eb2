#include "aha/kernels/weight_gradient/weight_gradient.h"

#include <list>

#include "aha/base/error.h"
#include "aha/kernels/sets/kernels_ref.h"
#include "aha/kernels/weight_gradient/tile_operands.h"

namespace aha {
namespace {

void check_operand(const KernelSet& kernels, int64_t rows, const Activations* a, std::string_view what) {
  if (!a || a->format() != kernels.format || a->rows() < rows)
    throw input_error("{}: expected {} rows in {}, found {} in {}", what, rows, name_of(kernels.format),
                      a ? a->rows() : 0, a ? name_of(a->format()) : "nothing");
}

}  // namespace

TileOperands& tile_operands(Format format, int64_t N, int64_t K, int64_t rows) {
  constexpr size_t kKept = 16;
  static thread_local std::list<TileOperands> kept;
  for (TileOperands& o : kept)
    if (o.left.format() == format && o.left.rows() == N && o.left.columns() == rows && o.right.outputs() == K)
      return o;
  if (kept.size() == kKept) kept.pop_back();
  return kept.emplace_front(TileOperands{Activations(format, N, rows), PackedWeights(format, K, rows)});
}

void multiply_operands(const KernelSet& kernels, const TileOperands& operands, const WeightGradient& job) {
  gemm(kernels, job.dy->columns(), operands.left, operands.right, AddToRows{job.weight, job.stride, nullptr});
}

void weight_gradient_ref(const KernelSet&, int64_t rows, const WeightGradient& job) {
  for (int64_t n = 0; n < job.dy->columns(); ++n) {
    for (int64_t k = 0; k < job.x->columns(); ++k) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) sum += double{job.dy->at(r, n)} * job.x->at(r, k);
      float& to = job.weight[n * job.stride + k];
      to = static_cast<float>(to + sum);
    }
    if (!job.bias) continue;
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) sum += job.dy->at(r, n);
    job.bias[n] = static_cast<float>(job.bias[n] + sum);
  }
}

void operand_from_rows_ref(int64_t rows, const float* x, int64_t stride, Activations& out) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < out.columns(); ++c) out.set(r, c, x[r * stride + c]);
}

void weight_gradient(const KernelSet& kernels, int64_t rows, const WeightGradient& job) {
  check_operand(kernels, rows, job.dy, "gradient of the outputs");
  check_operand(kernels, rows, job.x, "inputs");
  if (!job.weight || job.stride < rounded_to_panel(job.x->columns()))
    throw input_error("gradient of weights: expected rows at least {} floats apart, found {}",
                      rounded_to_panel(job.x->columns()), job.stride);
  if (rows > 0) kernels.weight_gradient(kernels, rows, job);
}

void operand_from_rows(const KernelSet& kernels, int64_t rows, const float* x, int64_t stride,
                       Activations& out) {
  check_operand(kernels, rows, &out, "operand");
  if (stride < out.columns())
    throw input_error("operand: expected rows at least {} floats apart, found {}", out.columns(), stride);
  kernels.operand_from_rows(rows, x, stride, out);
}

}  // namespace aha
