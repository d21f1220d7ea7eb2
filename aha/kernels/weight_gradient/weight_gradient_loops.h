// The implementations that weight_gradient.cpp chooses from.
#pragma once

#include "aha/kernels/core/packed_weights.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"

namespace aha {

// Any form, float64 sums.
void weight_gradient_ref(int64_t rows, const WeightGradient& job);
void operand_from_rows_ref(int64_t rows, const float* x, int64_t stride, Activations& out);

// Float32 operands.
void weight_gradient_avx2(int64_t rows, const WeightGradient& job);
void weight_gradient_avx512(int64_t rows, const WeightGradient& job);

// Operands of bf16 tiles. left (N, rows) = dy^T; right takes `rows` inputs and gives K outputs. Rows of dy
// and x from `rows` on count as zero.
void transpose_tiles_avx512(int64_t rows, const Activations& dy, Activations& left);
void interleave_tiles_avx512(int64_t rows, const Activations& x, PackedWeights& right);
void add_column_sums_avx512(int64_t rows, const Activations& dy, float* sums);
void operand_from_rows_avx512(int64_t rows, const float* x, int64_t stride, Activations& out);

}  // namespace aha
