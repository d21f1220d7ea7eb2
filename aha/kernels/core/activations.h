// The left operand of a GEMM, in the form the kernel set multiplies.
//
//   kF32       row-major float32; the stride is an odd number of cache lines, so that the rows of a block do
//   not share cache sets kBf16      tiles of bfloat16: [row / 32][column / 32][32 rows][32 columns], each
//   block two AMX tiles kBf16Pair  the same with two planes a block, high and low: x = high + low up to 2^-17
//   |x|
//
// Columns are rounded up to 32 and rows to 32; what lies beyond the matrix is zero and stays zero. A panel,
// 32 columns of one row, is contiguous in every form; kernels read and write panels.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "aha/kernels/core/bf16.h"
#include "aha/kernels/core/buffer.h"

namespace aha {

enum class Format { kF32, kBf16, kBf16Pair };
std::string_view name_of(Format format);

constexpr int64_t kPanel = 32;
constexpr int64_t rounded_to_panel(int64_t n) {
  return (n + kPanel - 1) / kPanel * kPanel;
}

class Activations {
 public:
  Activations() = default;
  Activations(Format format, int64_t rows, int64_t columns);

  Format format() const { return format_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t panels() const { return rounded_to_panel(columns_) / kPanel; }

  // kF32
  int64_t stride() const { return stride_; }
  float* f32() { return f32_.data(); }
  const float* f32() const { return f32_.data(); }
  // kBf16, kBf16Pair: the high part of a panel starts here, the low part (if any) kPlane elements later.
  static constexpr int64_t kPlane = kPanel * kPanel;
  int64_t planes() const { return format_ == Format::kBf16Pair ? 2 : 1; }
  int64_t panel_offset(int64_t row, int64_t panel) const {
    return ((row / kPanel) * panels() + panel) * planes() * kPlane + (row % kPanel) * kPanel;
  }
  Bf16* bf16() { return bf16_.data(); }
  const Bf16* bf16() const { return bf16_.data(); }

  // One element, in any form. Slow: for references and tests.
  float at(int64_t row, int64_t column) const;
  void set(int64_t row, int64_t column, float value);

 private:
  Format format_ = Format::kF32;
  int64_t rows_ = 0, columns_ = 0, stride_ = 0;
  AlignedBuffer<float> f32_;
  AlignedBuffer<Bf16> bf16_;
};

}  // namespace aha
