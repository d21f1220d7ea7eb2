// The gradient of weights in vector registers, float32.
//
// Both operands of a slice of kSlice rows are laid out for the inner tile of gemm_vector.h: x as panels of 32
// columns, which stay in the first level cache, dy as panels as wide as the tile is high.
#pragma once

#include <cstring>

#include "aha/kernels/gemm/gemm_vector.h"
#include "aha/kernels/weight_gradient/column_sums.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"

namespace aha {
namespace {

constexpr int64_t kSlice = 256;
static_assert(kTileRows <= kLanes);

inline void weight_gradient_f32(const KernelSet&, int64_t rows, const WeightGradient& job) {
  const Activations &dy = *job.dy, &x = *job.x;
  const int64_t N = dy.columns(), K = rounded_to_panel(x.columns());
  const int64_t tiles = (N + kTileRows - 1) / kTileRows;
  static thread_local AlignedBuffer<float> left_buffer, right_buffer;
  float* left = left_buffer.at_least(tiles * kSlice * kLanes);
  float* right = right_buffer.at_least(kSlice * kPanel);
  alignas(64) float sums[kTileRows * kPanel];
  for (int64_t r0 = 0; r0 < rows; r0 += kSlice) {
    const int64_t depth = rows - r0 < kSlice ? rows - r0 : kSlice;
    // A panel is kLanes apart although kTileRows of it count: one load a row. The last may read what follows
    // the row, which an operand's stride leaves room for.
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t r = 0; r < depth; ++r)
        store(left + (t * kSlice + r) * kLanes, load(dy.f32() + (r0 + r) * dy.stride() + t * kTileRows));
    for (int64_t k = 0; k < K; k += kPanel) {
      for (int64_t r = 0; r < depth; ++r)
        store_panel(right + r * kPanel, load_panel(x.f32() + (r0 + r) * x.stride() + k));
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t height = N - t * kTileRows < kTileRows ? N - t * kTileRows : kTileRows;
        multiply(height, kPanel, depth, {left + t * kSlice * kLanes, 1, kLanes}, right, kPanel, sums, kPanel);
        float* to = job.weight + t * kTileRows * job.stride + k;
        for (int64_t n = 0; n < height; ++n)
          store_panel(to + n * job.stride, load_panel(to + n * job.stride) + load_panel(sums + n * kPanel));
      }
    }
  }
  if (job.bias) add_column_sums<FormF32>(rows, dy, job.bias);
}

inline void copy_rows(int64_t rows, const float* x, int64_t stride, Activations& out) {
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(out.f32() + r * out.stride(), x + r * stride, sizeof(float) * out.columns());
}

}  // namespace
}  // namespace aha
