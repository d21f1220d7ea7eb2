// gelu'(x) of a GEMM's outputs, kept in the forward pass for the backward pass.
//
// It lies between -0.1290 and 1.1290, so networks of bf16 keep a byte of it, in steps of 1/200: where a unit
// is on, as exact as bf16, whose steps there are 1/256 and 1/128; 0, 1/2 and 1 are met exactly. It is a half
// to two thirds of what a backward pass needs of the forward pass. Networks of other forms keep it in theirs.
#pragma once

#include "aha/kernels/core/activations.h"

namespace aha {

class ActivationDerivative {
 public:
  static constexpr float kStep = 0.005f;
  static constexpr int kZero = 26;  // the byte of 0

  ActivationDerivative() = default;
  ActivationDerivative(Format format, int64_t rows, int64_t columns);

  Format format() const { return format_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  int64_t bytes() const;

  // kBf16: laid out as Activations are, an element a byte.
  uint8_t* data() { return bytes_.data(); }
  const uint8_t* data() const { return bytes_.data(); }
  // Other forms.
  const Activations& wide() const { return wide_; }

  // One element, in any form. Slow: for references and tests.
  float at(int64_t row, int64_t column) const;
  void set(int64_t row, int64_t column, float value);

 private:
  int64_t index(int64_t row, int64_t column) const;

  Format format_ = Format::kF32;
  int64_t rows_ = 0, columns_ = 0;
  Activations wide_;
  AlignedBuffer<uint8_t> bytes_;
};

}  // namespace aha
