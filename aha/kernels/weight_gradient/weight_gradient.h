// The gradient of a GEMM's weights: a GEMM of two activations over their rows.
//
//   y = x W^T + b:    dW[n, k] += sum_r dy[r, n] x[r, k],    db[n] += sum_r dy[r, n]
//
// Sums are float32 and in an order that depends on the number of rows alone. Cost: 2 * rows * N * K flops.
// One thread.
//
// Float32 operands are multiplied as they lie. Tiles multiply along rows of the left operand and pairs of
// rows of the right one: dy is transposed and x interleaved, 32 x 32 elements at a time, then both go to
// gemm().
#pragma once

#include "aha/kernels/core/activations.h"

namespace aha {

struct KernelSet;

struct WeightGradient {
  const Activations* dy = nullptr;  // (rows, N)
  const Activations* x = nullptr;   // (rows, K)
  float* weight = nullptr;          // N rows of K, added to; K rounded up to 32 is written
  int64_t stride = 0;               // floats from row to row, at least K rounded up to 32
  float* bias = nullptr;            // N rounded up to 32, added to; null = not wanted
};
void weight_gradient(const KernelSet& kernels, int64_t rows, const WeightGradient& job);

// The first `rows` rows of x, `stride` floats apart, as a left operand of out.columns() columns.
void operand_from_rows(const KernelSet& kernels, int64_t rows, const float* x, int64_t stride,
                       Activations& out);

}  // namespace aha
