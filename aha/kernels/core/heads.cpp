#include "aha/kernels/core/heads.h"

#include "aha/base/error.h"

namespace aha {

Heads::Heads(Format format, int64_t images, int64_t heads, int64_t tokens, int64_t width)
    : format_(format),
      images_(images),
      heads_(heads),
      tokens_(tokens),
      width_(width),
      head_stride_(rounded_to_strip(tokens) * width),
      row_offsets_(images * tokens) {
  if (width <= 0 || width % kStrip != 0)
    throw input_error("width of an attention head: expected a multiple of {}, found {}", kStrip, width);
  for (int64_t image = 0; image < images; ++image)
    for (int64_t token = 0; token < tokens; ++token)
      row_offsets_[image * tokens + token] = offset(image, 0) + token * width;
  if (format == Format::kF32)
    f32_ = AlignedBuffer<float>(plane());
  else
    bf16_ = AlignedBuffer<Bf16>(plane() * (format == Format::kBf16Pair ? 2 : 1));
}

float Heads::at(int64_t image, int64_t head, int64_t token, int64_t column) const {
  const int64_t i = offset(image, head) + token * width_ + column;
  if (format_ == Format::kF32) return f32_[i];
  const float high = float_from_bf16(bf16_[i]);
  return format_ == Format::kBf16 ? high : high + float_from_bf16(bf16_[i + plane()]);
}

void Heads::set(int64_t image, int64_t head, int64_t token, int64_t column, float value) {
  const int64_t i = offset(image, head) + token * width_ + column;
  if (format_ == Format::kF32) {
    f32_[i] = value;
    return;
  }
  bf16_[i] = bf16_from_float(value);
  if (format_ == Format::kBf16Pair) bf16_[i + plane()] = bf16_from_float(value - float_from_bf16(bf16_[i]));
}

}  // namespace aha
