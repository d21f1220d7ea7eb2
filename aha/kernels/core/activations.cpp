#include "aha/kernels/core/activations.h"

namespace aha {

std::string_view name_of(Format format) {
  switch (format) {
    case Format::kF32:
      return "f32";
    case Format::kBf16:
      return "bf16";
    case Format::kBf16Pair:
      return "bf16 pair";
  }
  return "";
}

Activations::Activations(Format format, int64_t rows, int64_t columns)
    : format_(format), rows_(rows), columns_(columns) {
  if (format == Format::kF32) {
    constexpr int64_t kLine = 16;  // floats
    stride_ = rounded_to_strip(columns) + kLine;
    f32_ = AlignedBuffer<float>(rows * stride_);
  } else {
    bf16_ = AlignedBuffer<Bf16>(rounded_to_strip(rows) * rounded_to_strip(columns) * planes());
  }
}

float Activations::at(int64_t row, int64_t column) const {
  if (format_ == Format::kF32) return f32_[row * stride_ + column];
  const int64_t i = strip_offset(row, column / kStrip) + column % kStrip;
  const float high = float_from_bf16(bf16_[i]);
  return format_ == Format::kBf16 ? high : high + float_from_bf16(bf16_[i + kPlane]);
}

void Activations::set(int64_t row, int64_t column, float value) {
  if (format_ == Format::kF32) {
    f32_[row * stride_ + column] = value;
    return;
  }
  const int64_t i = strip_offset(row, column / kStrip) + column % kStrip;
  bf16_[i] = bf16_from_float(value);
  if (format_ == Format::kBf16Pair) bf16_[i + kPlane] = bf16_from_float(value - float_from_bf16(bf16_[i]));
}

}  // namespace aha
