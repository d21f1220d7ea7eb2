#include "aha/kernels/core/packed_weights.h"

#include <algorithm>

#include "aha/base/error.h"
#include "aha/base/shared_for.h"
#include "aha/kernels/sets/kernels_ref.h"

namespace aha {
namespace {
constexpr int64_t kBlock = kPanel * kPanel;
}

PackedWeights::PackedWeights(Format format, int64_t outputs, int64_t inputs) {
  become(format, outputs, inputs);
}

void PackedWeights::become(Format format, int64_t outputs, int64_t inputs) {
  format_ = format;
  outputs_ = outputs;
  inputs_ = inputs;
  const int64_t size = padded_outputs() * padded_inputs();
  if (format == Format::kF32)
    f32_.at_least(size);
  else
    bf16_.at_least(size * planes());
}

int64_t PackedWeights::index(int64_t n, int64_t k) const {
  if (format_ == Format::kF32) return (n / kPanel) * padded_inputs() * kPanel + k * kPanel + n % kPanel;
  const int64_t block = (n / kPanel) * (padded_inputs() / kPanel) + k / kPanel;
  return block * planes() * kBlock + (n % kPanel) / 16 * (kBlock / 2) + (k % kPanel) / 2 * 32 + (n % 16) * 2 +
         k % 2;
}

// Block by block, so that training, which packs its weights at every step, does no arithmetic on places an
// element: 32 x 32 elements lie together in every form.
void PackedWeights::fill(const float* weights, int64_t output_step, int64_t input_step) {
  for (int64_t n0 = 0; n0 < outputs_; n0 += kPanel)
    for (int64_t k0 = 0; k0 < inputs_; k0 += kPanel) {
      const int64_t height = std::min(kPanel, outputs_ - n0), depth = std::min(kPanel, inputs_ - k0);
      const float* from = weights + n0 * output_step + k0 * input_step;
      const int64_t block = index(n0, k0);
      if (format_ == Format::kF32) {
        float* to = f32_.data() + block;
        for (int64_t k = 0; k < depth; ++k)
          for (int64_t n = 0; n < height; ++n) to[k * kPanel + n] = from[n * output_step + k * input_step];
        continue;
      }
      Bf16* to = bf16_.data() + block;
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t n = 0; n < height; ++n) {
          const float value = from[n * output_step + k * input_step];
          const int64_t at = n / 16 * (kBlock / 2) + k / 2 * 32 + n % 16 * 2 + k % 2;
          to[at] = bf16_from_float(value);
          if (format_ == Format::kBf16Pair)
            to[at + kBlock] = bf16_from_float(value - float_from_bf16(to[at]));
        }
    }
}

std::vector<float> PackedWeights::unpacked() const {
  std::vector<float> out(outputs_ * inputs_);
  for (int64_t n0 = 0; n0 < outputs_; n0 += kPanel)
    for (int64_t k0 = 0; k0 < inputs_; k0 += kPanel)
      for (int64_t n = n0; n < std::min(n0 + kPanel, outputs_); ++n)
        for (int64_t k = k0; k < std::min(k0 + kPanel, inputs_); ++k) out[n * inputs_ + k] = at(n, k);
  return out;
}

float PackedWeights::at(int64_t output, int64_t input) const {
  const int64_t i = index(output, input);
  if (format_ == Format::kF32) return f32_[i];
  const float high = float_from_bf16(bf16_[i]);
  return format_ == Format::kBf16 ? high : high + float_from_bf16(bf16_[i + kBlock]);
}

PackedWeights PackedWeights::forward(Format format, const float* weights, int64_t outputs, int64_t inputs) {
  PackedWeights packed(format, outputs, inputs);
  packed.fill(weights, inputs, 1);
  return packed;
}

PackedWeights PackedWeights::backward(Format format, const float* weights, int64_t outputs, int64_t inputs) {
  PackedWeights packed(format, inputs, outputs);
  packed.fill(weights, 1, inputs);
  return packed;
}

void transpose_weights(const KernelSet& kernels, const PackedWeights& from, PackedWeights& to) {
  if (from.format() != kernels.format || &from == &to)
    throw input_error("transpose: expected weights in {}, found {}", name_of(kernels.format),
                      name_of(from.format()));
  to.become(from.format(), from.inputs(), from.outputs());
  constexpr double kOfABlock = 2e4;  // operations, of 32 x 32 weights: waits for memory
  const int64_t blocks = to.padded_outputs() / kPanel;
  shared_ranges(blocks, 1, kOfABlock * static_cast<double>(blocks * (to.padded_inputs() / kPanel)),
                [&](int64_t first, int64_t end) { kernels.transpose_weights(from, to, first, end); });
}

void transpose_weights_ref(const PackedWeights& from, PackedWeights& to, int64_t first, int64_t end) {
  const auto whole =
      PackedWeights::backward(from.format(), from.unpacked().data(), from.outputs(), from.inputs());
  const int64_t a_block = kBlock * (to.padded_inputs() / kPanel);  // elements of a plane of 32 outputs
  if (from.format() == Format::kF32)
    std::copy(whole.f32() + first * a_block, whole.f32() + end * a_block, to.f32() + first * a_block);
  else
    std::copy(whole.bf16() + first * a_block * to.planes(), whole.bf16() + end * a_block * to.planes(),
              to.bf16() + first * a_block * to.planes());
}

}  // namespace aha
