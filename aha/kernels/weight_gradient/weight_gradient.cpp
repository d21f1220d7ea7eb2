#include "aha/kernels/weight_gradient/weight_gradient.h"

#include <cstring>
#include <list>

#include "aha/base/error.h"
#include "aha/kernels/kernel_set.h"
#include "aha/kernels/weight_gradient/weight_gradient_loops.h"

namespace aha {
namespace {

struct TileOperands {
  Activations left;
  PackedWeights right;
};

// Operands of one shape, kept between calls: a training step asks for the same few shapes again and again.
TileOperands& tile_operands(Format format, int64_t N, int64_t K, int64_t rows) {
  constexpr size_t kKept = 16;
  static thread_local std::list<TileOperands> kept;
  for (TileOperands& o : kept)
    if (o.left.format() == format && o.left.rows() == N && o.left.columns() == rows && o.right.outputs() == K)
      return o;
  if (kept.size() == kKept) kept.pop_back();
  return kept.emplace_front(TileOperands{Activations(format, N, rows), PackedWeights(format, K, rows)});
}

void check_operand(const KernelSet& kernels, int64_t rows, const Activations* a, std::string_view what) {
  if (!a || a->format() != kernels.format || a->rows() < rows)
    throw input_error("{}: expected {} rows in {}, found {} in {}", what, rows, name_of(kernels.format),
                      a ? a->rows() : 0, a ? name_of(a->format()) : "nothing");
}

}  // namespace

void weight_gradient_ref(int64_t rows, const WeightGradient& job) {
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
  if (!job.weight || job.stride < rounded_to_strip(job.x->columns()))
    throw input_error("gradient of weights: expected rows at least {} floats apart, found {}",
                      rounded_to_strip(job.x->columns()), job.stride);
  if (rows == 0) return;
  if (kernels.isa == Isa::kReference) return weight_gradient_ref(rows, job);
  if (kernels.format == Format::kF32)
    return kernels.isa >= Isa::kAvx512 ? weight_gradient_avx512(rows, job) : weight_gradient_avx2(rows, job);
  auto& [left, right] = tile_operands(kernels.format, job.dy->columns(), job.x->columns(), rows);
  transpose_tiles_avx512(rows, *job.dy, left);
  interleave_tiles_avx512(rows, *job.x, right);
  gemm(kernels, job.dy->columns(), left, right, AddToRows{job.weight, job.stride, nullptr});
  if (job.bias) add_column_sums_avx512(rows, *job.dy, job.bias);
}

void operand_from_rows(const KernelSet& kernels, int64_t rows, const float* x, int64_t stride,
                       Activations& out) {
  check_operand(kernels, rows, &out, "operand");
  if (stride < out.columns())
    throw input_error("operand: expected rows at least {} floats apart, found {}", out.columns(), stride);
  if (kernels.format == Format::kF32)
    for (int64_t r = 0; r < rows; ++r)
      std::memcpy(out.f32() + r * out.stride(), x + r * stride, sizeof(float) * out.columns());
  else if (kernels.isa == Isa::kReference)
    operand_from_rows_ref(rows, x, stride, out);
  else
    operand_from_rows_avx512(rows, x, stride, out);
}

}  // namespace aha
