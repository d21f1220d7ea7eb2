// Convolution in vector registers: a tile of neighbouring pixels of one line by one or two panels of 16 outputs keeps its sums
// in registers while the neighbourhood's lines pass by.
//
// Measured beside oneDNN 2.6.3 (through libtorch, channels-last), 3x3, AVX-512, one thread, best of 50, ms an image, packing included.
// oneDNN lays weights out and sets itself up at each call, which one image alone pays in full.
//   pixels x channels -> outputs   alone: this, oneDNN     of 15: this, oneDNN
//   8 x 8 x 32 -> 32               0.015    0.037            0.007    0.010
//   16 x 16 x 32 -> 32             0.034    0.056            0.026    0.029
//   32 x 32 x 32 -> 16             0.069    0.079            0.064    0.057
//   32 x 32 x 16 -> 16             0.036    0.054            0.032    0.029
#pragma once

#include <array>
#include <utility>

#include "aha/kernels/convolution/convolution.h"
#include "aha/kernels/core/vector.h"

namespace aha {
namespace {

constexpr int kPanelVectors = ConvolutionWeights::kPanel / kLanes;  // 1 (AVX-512), 2 (AVX2)
constexpr int kMostSums = kLanes == 16 ? 28 : 12;                   // registers for sums

struct ConvolutionTile {
  const float* in;  // the first pixel's neighbourhood
  int64_t pixel_step, line_step;  // floats from a pixel's neighbourhood to the next one's; from line to line
  int64_t lines, run;             // lines of a neighbourhood, floats of each
  const float *panel, *bias;
  int64_t panel_step;  // floats to the next panel
  float* out;
  int64_t outputs;  // floats from pixel to pixel
  int64_t left;     // outputs from this panel on
};

// The 16 outputs of a panel, or as many as there are.
inline void store_panel(const Vec* sums, int64_t left, float* out) {
  if (left >= ConvolutionWeights::kPanel) {
    for (int v = 0; v < kPanelVectors; ++v) store(out + v * kLanes, sums[v]);
    return;
  }
  alignas(64) float all[ConvolutionWeights::kPanel];
  for (int v = 0; v < kPanelVectors; ++v) store(all + v * kLanes, sums[v]);
  for (int64_t n = 0; n < left; ++n) out[n] = all[n];
}

template <int kPixels, int kPanels>
void convolve_tile(const ConvolutionTile& t) {
  constexpr int kVectors = kPanels * kPanelVectors;
  Vec sums[kPixels][kVectors];
  for (auto& pixel : sums)
    for (int v = 0; v < kVectors; ++v) pixel[v] = load(t.bias + v * kLanes);
  const float* weights = t.panel;
  for (int64_t i = 0; i < t.lines; ++i) {
    const float* left = t.in + i * t.line_step;
    for (int64_t k = 0; k < t.run; ++k, ++left, weights += ConvolutionWeights::kPanel) {
      Vec w[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) w[v] = load(weights + v / kPanelVectors * t.panel_step + v % kPanelVectors * kLanes);
#pragma GCC unroll 28
      for (int p = 0; p < kPixels; ++p) {
        const Vec x = splat(left[p * t.pixel_step]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[p][v] = fma(x, w[v], sums[p][v]);
      }
    }
  }
#pragma GCC unroll 28
  for (int p = 0; p < kPixels; ++p)
    for (int panel = 0; panel < kPanels; ++panel)
      store_panel(sums[p] + panel * kPanelVectors, t.left - panel * ConvolutionWeights::kPanel,
                  t.out + p * t.outputs + panel * ConvolutionWeights::kPanel);
}

using ConvolutionTileFunction = void (*)(const ConvolutionTile&);
template <int kPanels, int... kPixels>
constexpr auto convolution_tiles(std::integer_sequence<int, kPixels...>) {
  return std::array<ConvolutionTileFunction, sizeof...(kPixels)>{convolve_tile<kPixels + 1, kPanels>...};
}
template <int kPanels>
constexpr int kWidestTile = kMostSums / (kPanels * kPanelVectors);
template <int kPanels>
constexpr auto kConvolutionTiles = convolution_tiles<kPanels>(std::make_integer_sequence<int, kWidestTile<kPanels>>());

// One line of `width` pixels, in tiles of nearly the same width.
template <int kPanels>
void convolve_line(int64_t width, ConvolutionTile tile) {
  const int64_t tiles = (width + kWidestTile<kPanels> - 1) / kWidestTile<kPanels>;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t pixels = width * (i + 1) / tiles - width * i / tiles;
    kConvolutionTiles<kPanels>[pixels - 1](tile);
    tile.in += pixels * tile.pixel_step;
    tile.out += pixels * tile.outputs;
  }
}

inline void convolution_vector(int64_t lines, const ConvolutionJob& job) {
  constexpr int kPanelsAtOnce = kLanes == 16 ? 2 : 1;
  const ConvolutionWeights& w = *job.weights;
  const int64_t C = w.channels(), line_step = job.in_width * C;
  for (int64_t p = 0; p < w.panels(); p += kPanelsAtOnce) {
    const int64_t first = p * ConvolutionWeights::kPanel;
    const bool both = kPanelsAtOnce == 2 && p + 1 < w.panels();
    for (int64_t y = 0; y < lines; ++y) {
      const ConvolutionTile tile{job.in + y * job.stride * line_step, job.stride * C, line_step, w.side(), w.side() * C, w.panel(p), w.bias() + first,
                                 w.depth() * ConvolutionWeights::kPanel, job.out + y * job.width * w.outputs() + first, w.outputs(), w.outputs() - first};
      if (both)
        convolve_line<kPanelsAtOnce>(job.width, tile);
      else
        convolve_line<1>(job.width, tile);
    }
  }
}

}  // namespace
}  // namespace aha
