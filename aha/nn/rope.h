// Rotary position embedding of DINOv3: a patch's place turns its queries and keys.
//
//   y = 2 (r + 0.5) / h - 1,  x = 2 (c + 0.5) / w - 1          center of patch (r, c), each axis on its own
//   a = [2 pi y / period_j for all j,  2 pi x / period_j for all j],  period_j = 100^(j / q),  q = d / 4
//   rot(v) = v * cos([a, a]) + [-v_second_half, v_first_half] * sin([a, a])
//
// One table for all blocks, heads and images of a grid. Prefix tokens (class, registers) are not turned.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include "aha/tensor/tensor.h"

namespace aha {

struct RopeTable {
  Tensor cos, sin;  // (N, d)
};

Tensor rope_periods(int64_t head_width, double base = 100);  // (head_width / 4)
RopeTable rope_table(const Tensor& periods, int64_t h, int64_t w);

// Holds the periods as a buffer, because DINOv3's own files store them (rounded to bf16: sin and cos then
// differ by up to 5e-3 from the formula).
struct RopeImpl : torch::nn::Cloneable<RopeImpl> {
  explicit RopeImpl(int64_t head_width) : head_width(head_width) { reset(); }
  void reset() override { periods = register_buffer("periods", rope_periods(head_width)); }
  RopeTable forward(int64_t h, int64_t w) { return rope_table(periods, h, w); }

  int64_t head_width;
  Tensor periods;
};
TORCH_MODULE(Rope);

// (B, heads, T, d): the last N tokens are turned, the first T - N left alone.
Tensor rotated(const Tensor& x, const RopeTable& table);

}  // namespace aha
