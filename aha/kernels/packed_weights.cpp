#include "aha/kernels/packed_weights.h"

namespace aha {
namespace {
constexpr int64_t kBlock = kStrip * kStrip;
}

PackedWeights::PackedWeights(Format format, int64_t outputs, int64_t inputs)
    : format_(format), outputs_(outputs), inputs_(inputs) {
  const int64_t size = padded_outputs() * padded_inputs();
  if (format == Format::kF32)
    f32_ = AlignedBuffer<float>(size);
  else
    bf16_ = AlignedBuffer<Bf16>(size * planes());
}

int64_t PackedWeights::index(int64_t n, int64_t k) const {
  if (format_ == Format::kF32) return (n / kStrip) * padded_inputs() * kStrip + k * kStrip + n % kStrip;
  const int64_t block = (n / kStrip) * (padded_inputs() / kStrip) + k / kStrip;
  return block * planes() * kBlock + (n % kStrip) / 16 * (kBlock / 2) + (k % kStrip) / 2 * 32 + (n % 16) * 2 +
         k % 2;
}

void PackedWeights::set(int64_t output, int64_t input, float value) {
  const int64_t i = index(output, input);
  if (format_ == Format::kF32) {
    f32_[i] = value;
    return;
  }
  bf16_[i] = bf16_from_float(value);
  if (format_ == Format::kBf16Pair) bf16_[i + kBlock] = bf16_from_float(value - float_from_bf16(bf16_[i]));
}

float PackedWeights::at(int64_t output, int64_t input) const {
  const int64_t i = index(output, input);
  if (format_ == Format::kF32) return f32_[i];
  const float high = float_from_bf16(bf16_[i]);
  return format_ == Format::kBf16 ? high : high + float_from_bf16(bf16_[i + kBlock]);
}

PackedWeights PackedWeights::forward(Format format, const float* weights, int64_t outputs, int64_t inputs) {
  PackedWeights packed(format, outputs, inputs);
  for (int64_t n = 0; n < outputs; ++n)
    for (int64_t k = 0; k < inputs; ++k) packed.set(n, k, weights[n * inputs + k]);
  return packed;
}

PackedWeights PackedWeights::backward(Format format, const float* weights, int64_t outputs, int64_t inputs) {
  PackedWeights packed(format, inputs, outputs);
  for (int64_t k = 0; k < outputs; ++k)
    for (int64_t n = 0; n < inputs; ++n) packed.set(n, k, weights[k * inputs + n]);
  return packed;
}

}  // namespace aha
