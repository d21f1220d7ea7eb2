// The right operand of a GEMM: weights laid out once in the order in which a kernel reads them.
//
//   kF32                panels of 32 outputs: [n / 32][k][32]
//   kBf16, kBf16Pair    blocks of 32 outputs by 32 inputs: [n / 32][k / 32][plane][2 tiles][16 input
//   pairs][16 outputs][2]
//
// A panel is contiguous, so that the next one can be fetched while one is in use. Inputs and outputs are
// rounded up to 32 with zeros: results have padded_outputs() columns.
#pragma once

#include <vector>

#include "aha/kernels/core/activations.h"

namespace aha {

class PackedWeights {
 public:
  PackedWeights() = default;
  // Zeros.
  PackedWeights(Format format, int64_t outputs, int64_t inputs);
  // y = x W^T. weights: row-major (outputs, inputs).
  static PackedWeights forward(Format format, const float* weights, int64_t outputs, int64_t inputs);
  // The backward pass, dx = dy W, from the same weights: takes `outputs` columns and gives `inputs`.
  static PackedWeights backward(Format format, const float* weights, int64_t outputs, int64_t inputs);

  Format format() const { return format_; }
  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  int64_t padded_outputs() const { return rounded_to_panel(outputs_); }
  int64_t padded_inputs() const { return rounded_to_panel(inputs_); }
  int64_t planes() const { return format_ == Format::kBf16Pair ? 2 : 1; }
  int64_t bytes() const { return padded_outputs() * padded_inputs() * (format_ == Format::kBf16 ? 2 : 4); }

  float* f32() { return f32_.data(); }
  const float* f32() const { return f32_.data(); }
  Bf16* bf16() { return bf16_.data(); }
  const Bf16* bf16() const { return bf16_.data(); }

  // Another shape, in memory that is there already where it is large enough; the elements are anything then.
  void become(Format format, int64_t outputs, int64_t inputs);

  // Row-major (outputs, inputs), as they are after rounding: what is packed need not be kept beside its pack.
  std::vector<float> unpacked() const;

  // One element, in any form. Slow: for references and tests.
  float at(int64_t output, int64_t input) const;

 private:
  int64_t index(int64_t output, int64_t input) const;
  // From element (n, k) at weights[n * output_step + k * input_step].
  void fill(const float* weights, int64_t output_step, int64_t input_step);

  Format format_ = Format::kF32;
  int64_t outputs_ = 0, inputs_ = 0;
  AlignedBuffer<float> f32_;
  AlignedBuffer<Bf16> bf16_;
};

struct KernelSet;

// `to` becomes the pack of the backward pass, W^T, from the pack W of the forward pass. Cheap beside a
// GEMM with it: some 250 instructions for 32 x 32 weights of bf16, whose GEMM takes 32 cycles per row
// of Zen 4. So networks keep one pack, not two (figures: docs/decisions/engine.md).
void transpose_weights(const KernelSet& kernels, const PackedWeights& from, PackedWeights& to);

}  // namespace aha
