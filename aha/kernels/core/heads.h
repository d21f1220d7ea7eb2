// Queries, keys, values or their gradients, one head after the other: [image][head][token][width].
//
// Tokens are rounded up to 32; the added rows are zero and stay zero. kBf16Pair keeps the low parts in a
// second plane of the same shape.
#pragma once

#include "aha/kernels/core/activations.h"

namespace aha {

class Heads {
 public:
  Heads() = default;
  // width: a multiple of 32.
  Heads(Format format, int64_t images, int64_t heads, int64_t tokens, int64_t width);

  Format format() const { return format_; }
  int64_t images() const { return images_; }
  int64_t heads() const { return heads_; }
  int64_t tokens() const { return tokens_; }
  int64_t width() const { return width_; }
  int64_t columns() const { return heads_ * width_; }  // of the matrix these heads were cut from

  // Elements from one head to the next.
  int64_t head_stride() const { return head_stride_; }
  // Start of a head; the low parts lie plane() elements after the high ones.
  int64_t offset(int64_t image, int64_t head) const { return (image * heads_ + head) * head_stride_; }
  int64_t plane() const { return images_ * heads_ * head_stride_; }
  // Start of row image * tokens + token, in head 0: a table, because a division per row shows in the
  // epilogues.
  const int64_t* row_offsets() const { return row_offsets_.data(); }

  float* f32() { return f32_.data(); }
  const float* f32() const { return f32_.data(); }
  Bf16* bf16() { return bf16_.data(); }
  const Bf16* bf16() const { return bf16_.data(); }

  // One element, in any form. Slow: for references and tests.
  float at(int64_t image, int64_t head, int64_t token, int64_t column) const;
  void set(int64_t image, int64_t head, int64_t token, int64_t column, float value);

 private:
  Format format_ = Format::kF32;
  int64_t images_ = 0, heads_ = 0, tokens_ = 0, width_ = 0, head_stride_ = 0;
  AlignedBuffer<int64_t> row_offsets_;
  AlignedBuffer<float> f32_;
  AlignedBuffer<Bf16> bf16_;
};

}  // namespace aha
