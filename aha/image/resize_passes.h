// The two inner loops of resizing, written once plainly and once for AVX2; both give the same bytes.
//
//   out = clip((2^21 + sum_t w[t] * in[first + t]) >> 22, 0, 255)
//
// A weight has 22 fraction bits and its product with a pixel needs 32. For 16-bit multipliers it is kept a
// second time in two parts, w = high * 2^12 + low: both sums wrap modulo 2^32 as the whole does, and the
// whole fits in 31 bits, so that the result is exact.
//
// Measured on one core, to 341 x 256, bilinear / bicubic: from 500 x 375, AVX2 0.51 / 0.67 ms, plain 0.95
// / 1.54, Pillow 1.29 / 2.09 (decoding the JPEG takes 1.1 ms); from 4000 x 3000, AVX2 33 / 54 ms, plain 110 /
// 189, Pillow 127 / 206.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aha/image/resize.h"

namespace aha {

constexpr int kWeightBits = 22;
constexpr int kLowBits = 12;
constexpr int kTapGroup = 4;  // taps are stored in whole groups, the last filled with zeros

// The taps of every output position along one axis.
struct TapTable {
  int stride = 0;          // taps stored per output position, a multiple of kTapGroup
  std::vector<int> first;  // first input position
  std::vector<int> count;  // taps in use
  std::vector<int32_t> weight;
  std::vector<int16_t> high, low;
};

struct ResizePasses {
  // One row. `in` has kRowPadding readable bytes behind its last pixel.
  void (*horizontal)(const uint8_t* in, const TapTable& taps, int out_width, uint8_t* out);
  // One output row y from the rows taps.first[y] .. of `in`, each `row_bytes` long.
  void (*vertical)(const uint8_t* in, size_t row_bytes, const TapTable& taps, int y, uint8_t* out);
};

// A group of taps beyond the last pixel, and the width of one load.
constexpr size_t kRowPadding = 3 * kTapGroup + 16;

const ResizePasses& portable_passes();
const ResizePasses& avx2_passes();  // only where the CPU has AVX2
const ResizePasses& best_passes();

// resized() with chosen inner loops.
Image resized_with(const ResizePasses& passes, const Image& image, int width, int height, Filter filter);

}  // namespace aha
