// Buffers for kernels, and how many bytes they are together.
#pragma once

#include "aha/kernels/activations.h"
#include "aha/kernels/heads.h"
#include "aha/kernels/slopes.h"

namespace aha {

struct CountedBuffers {
  int64_t bytes = 0;

  AlignedBuffer<float> floats(int64_t n) {
    bytes += 4 * n;
    return AlignedBuffer<float>(n);
  }
  Activations operand(Format format, int64_t rows, int64_t columns) {
    bytes += rounded_to_strip(rows) * rounded_to_strip(columns) * (format == Format::kBf16 ? 2 : 4);
    return Activations(format, rows, columns);
  }
  Slopes slopes(Format format, int64_t rows, int64_t columns) {
    Slopes made(format, rows, columns);
    bytes += made.bytes();
    return made;
  }
  Heads heads(Format format, int64_t images, int64_t count, int64_t tokens, int64_t width) {
    bytes += images * count * rounded_to_strip(tokens) * width * (format == Format::kBf16 ? 2 : 4);
    return Heads(format, images, count, tokens, width);
  }
};

}  // namespace aha
