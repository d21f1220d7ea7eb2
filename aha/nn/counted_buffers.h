// Buffers for kernels, and how many bytes they are together.
#pragma once

#include "aha/kernels/core/activation_derivative.h"
#include "aha/kernels/core/activations.h"
#include "aha/kernels/core/heads.h"

namespace aha {

struct CountedBuffers {
  int64_t bytes = 0;

  AlignedBuffer<float> floats(int64_t n) {
    bytes += 4 * n;
    return AlignedBuffer<float>(n);
  }
  Activations operand(Format format, int64_t rows, int64_t columns) {
    bytes += rounded_to_panel(rows) * rounded_to_panel(columns) * (format == Format::kBf16 ? 2 : 4);
    return Activations(format, rows, columns);
  }
  ActivationDerivative activation_derivative(Format format, int64_t rows, int64_t columns) {
    ActivationDerivative made(format, rows, columns);
    bytes += made.bytes();
    return made;
  }
  Heads heads(Format format, int64_t images, int64_t count, int64_t tokens, int64_t width) {
    bytes += images * count * rounded_to_panel(tokens) * width * (format == Format::kBf16 ? 2 : 4);
    return Heads(format, images, count, tokens, width);
  }
};

}  // namespace aha
