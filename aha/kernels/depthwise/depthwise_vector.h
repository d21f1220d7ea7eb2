// Depthwise convolution on vectors of channels: a tile of neighboring pixels of one line keeps its sums and
// one line of the kernel in registers, so that an input is loaded once for seven multiply-adds.
//
// Measured beside oneDNN 2.6.3 (through libtorch, channels-last) on a busy core, AVX-512, best of 30, in ms.
// Ours is the forward. The backward pass is the same loop with the kernel turned round; it reads what it adds
// to and lays out the next operand, and takes 1.1 to 1.6 times as long (aha bench --only kernels).
//   images x pixels x channels   this     oneDNN forward | backward     AVX2 here
//   1 x 56 x 56 x 96             0.23     0.43 | 0.44                   0.42
//   4 x 14 x 14 x 384            0.17     0.36 | 0.52                   0.36
//   32 x 8 x 8 x 128             0.14     0.31 | 0.33                   0.25
//   32 x 4 x 4 x 256             0.07     0.15 | 0.12                   0.10
// The gradient of the kernel runs at 65 to 84 % of the registers' peak (24 to 31 % on 4 x 4 pixels, where
// most taps fall outside).
#pragma once

#include <array>
#include <utility>

#include "aha/kernels/core/panels.h"
#include "aha/kernels/depthwise/depthwise.h"

namespace aha {
namespace {

constexpr int kTilePixels =
    kLanes == 16 ? 16 : 8;  // sums, seven taps and an input: 24 of 32 registers, 16 of 16

struct DepthwiseTile {
  const float* in;  // the tile's first pixel, in the image's line 0
  int64_t in_stride, line_stride;
  int64_t y, height;
  const float* taps;  // [tap][32]
  float* out;
  int64_t out_stride;
  const float* bias;  // null: start from out
};

// Input kJ of a line, counted from three pixels left of the tile, goes to the sums kJ - 6 .. kJ.
template <int kPixels, int kFrom, int kTo>
inline void add_inputs(const float* line, int64_t stride, const Vec (&taps)[7], Vec (&sums)[kPixels]) {
#pragma GCC unroll 24
  for (int j = kFrom; j < kTo; ++j) {
    const Vec x = load(line + (j - 3) * stride);
#pragma GCC unroll 16
    for (int t = 0; t < kPixels; ++t)
      if (j - t >= 0 && j - t < 7) sums[t] = fma(x, taps[j - t], sums[t]);
  }
}

// inner_left, inner_right: the image goes on for at least three pixels on that side; otherwise it ends with
// the tile.
template <int kPixels>
void depthwise_tile(const DepthwiseTile& tile, bool inner_left, bool inner_right) {
  constexpr int64_t kReach = DepthwiseWeights::kReach, kSide = DepthwiseWeights::kSide;
  Vec sums[kPixels];
#pragma GCC unroll 16
  for (int t = 0; t < kPixels; ++t) sums[t] = load(tile.bias ? tile.bias : tile.out + t * tile.out_stride);
  const int64_t first = tile.y < kReach ? kReach - tile.y : 0;
  const int64_t last = tile.y + kReach < tile.height ? kSide : kReach + tile.height - tile.y;
  for (int64_t i = first; i < last; ++i) {
    const float* line = tile.in + (tile.y + i - kReach) * tile.line_stride;
    Vec taps[7];
#pragma GCC unroll 7
    for (int j = 0; j < 7; ++j) taps[j] = load(tile.taps + (i * kSide + j) * kPanel);
    if (inner_left) add_inputs<kPixels, 0, 3>(line, tile.in_stride, taps, sums);
    add_inputs<kPixels, 3, kPixels + 3>(line, tile.in_stride, taps, sums);
    if (inner_right) add_inputs<kPixels, kPixels + 3, kPixels + 6>(line, tile.in_stride, taps, sums);
  }
#pragma GCC unroll 16
  for (int t = 0; t < kPixels; ++t) store(tile.out + t * tile.out_stride, sums[t]);
}

using DepthwiseTileFunction = void (*)(const DepthwiseTile&, bool, bool);
template <int... kPixels>
constexpr auto depthwise_tile_functions(std::integer_sequence<int, kPixels...>) {
  return std::array<DepthwiseTileFunction, sizeof...(kPixels)>{depthwise_tile<kPixels + 1>...};
}
constexpr auto kDepthwiseTileFunctions =
    depthwise_tile_functions(std::make_integer_sequence<int, kTilePixels>());

// work(first pixel, pixels, inner left, inner right) for every tile of a line. Tiles of nearly the same
// width: more than one means at least kTilePixels / 2 pixels each, so that what is beside a tile is a
// neighbor of three pixels or the end of the image.
template <class Work>
inline void for_tiles(int64_t width, const Work& work) {
  const int64_t tiles = (width + kTilePixels - 1) / kTilePixels;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t x = i * width / tiles;
    work(x, (i + 1) * width / tiles - x, i > 0, i + 1 < tiles);
  }
}

template <class Form>
void depthwise_panels(int64_t first_line, int64_t lines, int64_t first, int64_t end,
                      const DepthwiseJob& job) {
  const int64_t line_stride = job.width * job.in_stride;
  for (int64_t i = first; i < end; ++i) {
    const int64_t s = i / lines, l = i % lines, image = (first_line + l) / job.height;
    const float* in = job.in + image * job.height * line_stride + s * kPanel;
    float* out = job.out + l * job.width * job.out_stride + s * kPanel;
    for (int v = 0; v < kVecs; ++v)
      for_tiles(job.width, [&](int64_t x, int64_t pixels, bool inner_left, bool inner_right) {
        const DepthwiseTile tile{in + x * job.in_stride + v * kLanes,
                                 job.in_stride,
                                 line_stride,
                                 (first_line + l) % job.height,
                                 job.height,
                                 job.weights->panel(s) + v * kLanes,
                                 out + x * job.out_stride + v * kLanes,
                                 job.out_stride,
                                 job.add ? nullptr : job.weights->bias() + s * kPanel + v * kLanes};
        kDepthwiseTileFunctions[pixels - 1](tile, inner_left, inner_right);
      });
    if (job.operand) {
      const PanelsOf<Form> operand(*job.operand);
      for (int64_t x = 0; x < job.width; ++x)
        operand.put(l * job.width + x, s, load_panel(out + x * job.out_stride));
    }
  }
}

// The gradient of the kernel: a tile of dout stays in registers, and each input is loaded once for seven
// taps.
struct DepthwiseGradientTile {
  const float* in;  // the tile's first pixel, in the image's line 0
  int64_t in_stride, line_stride;
  int64_t y, height;
  const float* dout;
  int64_t dout_stride;
  float *taps, *bias;  // [tap][32], [32]
};

template <int kPixels, int kFrom, int kTo>
inline void add_products(const float* line, int64_t stride, const Vec (&dout)[kPixels], Vec (&sums)[7]) {
#pragma GCC unroll 24
  for (int j = kFrom; j < kTo; ++j) {
    const Vec x = load(line + (j - 3) * stride);
#pragma GCC unroll 16
    for (int t = 0; t < kPixels; ++t)
      if (j - t >= 0 && j - t < 7) sums[j - t] = fma(x, dout[t], sums[j - t]);
  }
}

template <int kPixels>
void depthwise_gradient_tile(const DepthwiseGradientTile& tile, bool inner_left, bool inner_right) {
  constexpr int64_t kReach = DepthwiseWeights::kReach, kSide = DepthwiseWeights::kSide;
  Vec dout[kPixels], bias = load(tile.bias);
#pragma GCC unroll 16
  for (int t = 0; t < kPixels; ++t) {
    dout[t] = load(tile.dout + t * tile.dout_stride);
    bias = bias + dout[t];
  }
  store(tile.bias, bias);
  const int64_t first = tile.y < kReach ? kReach - tile.y : 0;
  const int64_t last = tile.y + kReach < tile.height ? kSide : kReach + tile.height - tile.y;
  for (int64_t i = first; i < last; ++i) {
    const float* line = tile.in + (tile.y + i - kReach) * tile.line_stride;
    float* taps = tile.taps + i * kSide * kPanel;
    Vec sums[7];
#pragma GCC unroll 7
    for (int j = 0; j < 7; ++j) sums[j] = load(taps + j * kPanel);
    if (inner_left) add_products<kPixels, 0, 3>(line, tile.in_stride, dout, sums);
    add_products<kPixels, 3, kPixels + 3>(line, tile.in_stride, dout, sums);
    if (inner_right) add_products<kPixels, kPixels + 3, kPixels + 6>(line, tile.in_stride, dout, sums);
#pragma GCC unroll 7
    for (int j = 0; j < 7; ++j) store(taps + j * kPanel, sums[j]);
  }
}

using DepthwiseGradientFunction = void (*)(const DepthwiseGradientTile&, bool, bool);
template <int... kPixels>
constexpr auto depthwise_gradient_functions(std::integer_sequence<int, kPixels...>) {
  return std::array<DepthwiseGradientFunction, sizeof...(kPixels)>{depthwise_gradient_tile<kPixels + 1>...};
}
constexpr auto kDepthwiseGradientFunctions =
    depthwise_gradient_functions(std::make_integer_sequence<int, kTilePixels>());

void depthwise_weight_gradient_panels(int64_t images, const DepthwiseWeightGradient& job) {
  const int64_t line_stride = job.width * job.in_stride;
  for (int64_t s = 0; s < job.channels / kPanel; ++s)
    for (int64_t line = 0; line < images * job.height; ++line) {
      const float* in = job.in + line / job.height * job.height * line_stride + s * kPanel;
      const float* dout = job.dout + line * job.width * job.dout_stride + s * kPanel;
      for (int v = 0; v < kVecs; ++v)
        for_tiles(job.width, [&](int64_t x, int64_t pixels, bool inner_left, bool inner_right) {
          const DepthwiseGradientTile tile{in + x * job.in_stride + v * kLanes,
                                           job.in_stride,
                                           line_stride,
                                           line % job.height,
                                           job.height,
                                           dout + x * job.dout_stride + v * kLanes,
                                           job.dout_stride,
                                           job.taps + s * DepthwiseWeights::kTaps * kPanel + v * kLanes,
                                           job.bias + s * kPanel + v * kLanes};
          kDepthwiseGradientFunctions[pixels - 1](tile, inner_left, inner_right);
        });
    }
}

}  // namespace
}  // namespace aha
