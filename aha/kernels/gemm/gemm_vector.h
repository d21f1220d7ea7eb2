// GEMM in vector registers, float32.
//
// The inner tile keeps 14 x 32 sums in registers (AVX-512; 6 x 16 with AVX2), reads one row of a weight panel
// and one value of each of its rows of x a step, and runs over the whole depth: each sum is one chain of
// fused multiply-adds in the order of k, whatever the tile's height. A block of rows stays in the second
// level cache (kBlockBytes) while the panels pass by; the next panel is fetched meanwhile.
//
// Measured at 3152 x 3072 x 768 on a busy core, several runs: 120 to 130 GFLOP/s without fetching, 134 to 161
// with it, 156 by OpenBLAS without bias, 177 within the first level cache. Cutting the depth into slices, so
// that weights stay in the first level cache, gave 116: shorter rows of x suit the hardware's prefetching
// less.
#pragma once

#include <array>
#include <utility>

#include "aha/kernels/gemm/epilogues.h"

namespace aha {
namespace {

constexpr int kTileRows = kLanes == 16 ? 14 : 6;
constexpr int kTileColumns = 2 * kLanes;
constexpr int64_t kBlockBytes = int64_t{1} << 20;
constexpr int64_t kStepsAhead = 16;  // of the weights, into the first level cache

// The left operand: element (m, k) at data[m * row + k * column].
struct LeftOperand {
  const float* data;
  int64_t row, column;
};

// What a tile fetches into the second level cache while it multiplies: kFetchBytes a step, so that the tiles
// of a block share the next panel among them.
using Fetch = const char*;
constexpr int64_t kFetchBytes = 8;

// c (R x kTileColumns) = a b; b's rows are b_row floats apart.
template <int R>
void multiply_tile(LeftOperand a, const float* b, int64_t b_row, int64_t depth, float* c, int64_t c_row,
                   Fetch fetch) {
  Vec sums[R][2];
  for (auto& row : sums) row[0] = row[1] = Vec{};
  const float* left = a.data;
  for (int64_t k = 0; k < depth; ++k) {
    const Vec b0 = load(b), b1 = load(b + kLanes);
#pragma GCC unroll 14
    for (int r = 0; r < R; ++r) {
      const Vec x = splat(left[r * a.row]);
      sums[r][0] = fma(x, b0, sums[r][0]);
      sums[r][1] = fma(x, b1, sums[r][1]);
    }
    const auto* ahead = reinterpret_cast<const char*>(b + kStepsAhead * b_row);
    _mm_prefetch(ahead, _MM_HINT_T0);
    if constexpr (kTileColumns * sizeof(float) > 64) _mm_prefetch(ahead + 64, _MM_HINT_T0);
    _mm_prefetch(fetch, _MM_HINT_T1);
    fetch += kFetchBytes;
    left += a.column;
    b += b_row;
  }
#pragma GCC unroll 14
  for (int r = 0; r < R; ++r) {
    store(c + r * c_row, sums[r][0]);
    store(c + r * c_row + kLanes, sums[r][1]);
  }
}

using TileFunction = void (*)(LeftOperand, const float*, int64_t, int64_t, float*, int64_t, Fetch);
template <int... R>
constexpr auto tile_functions(std::integer_sequence<int, R...>) {
  return std::array<TileFunction, sizeof...(R)>{multiply_tile<R + 1>...};
}
constexpr auto kTileFunctions = tile_functions(std::make_integer_sequence<int, kTileRows>());

// c (rows x columns) = a b for any number of rows and a multiple of kTileColumns columns.
inline void multiply(int64_t rows, int64_t columns, int64_t depth, LeftOperand a, const float* b,
                     int64_t b_row, float* c, int64_t c_row, Fetch fetch = nullptr) {
  if (!fetch) fetch = reinterpret_cast<Fetch>(b);  // what is there already
  for (int64_t m = 0; m < rows; m += kTileRows) {
    const int64_t height = rows - m < kTileRows ? rows - m : kTileRows;
    for (int64_t n = 0; n < columns; n += kTileColumns)
      kTileFunctions[height - 1]({a.data + m * a.row, a.row, a.column}, b + n, b_row, depth,
                                 c + m * c_row + n, c_row, fetch);
  }
}

template <class Finish>
void gemm_rows(const GemmPart& part, const Activations& x, const PackedWeights& weights,
               const Finish& finish) {
  const int64_t depth = weights.padded_inputs();
  int64_t block = kBlockBytes / (depth * 4) / kTileRows * kTileRows;
  if (block < kTileRows) block = kTileRows;
  alignas(64) float sums[kTileRows * kPanel];
  for (int64_t m0 = part.first_row; m0 < part.end_row; m0 += block) {
    const int64_t end = m0 + block < part.end_row ? m0 + block : part.end_row;
    for (int64_t n = part.first_column; n < part.end_column; n += kPanel) {
      const float* panel = weights.f32() + n * depth;
      const auto finish_panel = finish.at(n);
      const bool more = n + kPanel < part.end_column;
      Fetch fetch = reinterpret_cast<Fetch>(more ? panel + depth * kPanel : panel);
      for (int64_t m = m0; m < end; m += kTileRows) {
        const int64_t height = end - m < kTileRows ? end - m : kTileRows;
        for (int64_t r = 0; r < height; ++r) finish_panel.fetch(m + r);
        multiply(height, kPanel, depth, {x.f32() + m * x.stride(), x.stride(), 1}, panel, kPanel, sums,
                 kPanel, fetch);
        fetch += depth * kFetchBytes;
        for (int64_t r = 0; r < height; ++r) finish_panel.finish(m + r, load_panel(sums + r * kPanel));
      }
    }
  }
}

inline void gemm_f32(const GemmPart& part, const Activations& x, const PackedWeights& weights,
                     const Epilogue& epilogue) {
  std::visit([&](const auto& e) { gemm_rows(part, x, weights, finisher<FormF32>(e, weights)); }, epilogue);
}

}  // namespace
}  // namespace aha
