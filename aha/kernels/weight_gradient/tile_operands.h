// The two operands that the gradient of weights multiplies on tiles.
#pragma once

#include "aha/kernels/core/packed_weights.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"

namespace aha {

struct TileOperands {
  Activations left;     // (N, rows) = dy^T
  PackedWeights right;  // `rows` inputs, K outputs
};

// Operands of one shape, kept by the calling thread: a training step asks for the same few shapes again and
// again.
TileOperands& tile_operands(Format format, int64_t N, int64_t K, int64_t rows);

// job.weight += left right
void multiply_operands(const KernelSet& kernels, const TileOperands& operands, const WeightGradient& job);

}  // namespace aha
