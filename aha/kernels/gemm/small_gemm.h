// GEMM of small bf16 operands that lie in tiles of 16 rows (columns) by 32 in depth: what attention is
// made of.
//
//   left     rows of 32 elements, row_bytes apart
//   right    pairs of rows interleaved: [pair][16 columns][2]
//
// Hardware with tile registers multiplies 32 x 32 sums at a time, hardware with dot products of pairs 8 x 32
// in vector registers.
#pragma once

#include "aha/kernels/core/bf16.h"
#include "aha/kernels/gemm/dot_step.h"

namespace aha {
namespace {

template <class Hardware>
concept HasTiles = requires {
  Hardware::template zero<0>();
};

// Tiles of one operand of a GEMM. Elements from one tile of 16 rows (columns) to the next, from one step
// of 32 in depth to the next, from high to low plane.
struct Tiles {
  const Bf16* data;
  int64_t tile, step, row_bytes, plane;
};

template <class Hardware, int kRows, int kColumns>
[[gnu::always_inline]] inline void multiply_small_step(const Bf16* a, const Tiles& left, const Bf16* b,
                                                       const Tiles& right) {
  Hardware::template load<4>(a, left.row_bytes);
  Hardware::template load<6>(b, right.row_bytes);
  Hardware::template multiply_add<0, 4, 6>();
  if constexpr (kColumns == 2) {
    Hardware::template load<7>(b + right.tile, right.row_bytes);
    Hardware::template multiply_add<1, 4, 7>();
  }
  if constexpr (kRows == 2) {
    Hardware::template load<5>(a + left.tile, left.row_bytes);
    Hardware::template multiply_add<2, 5, 6>();
    if constexpr (kColumns == 2) Hardware::template multiply_add<3, 5, 7>();
  }
}

template <class Hardware, int kPlanes, int kRows, int kColumns>
inline void multiply_small_block(int64_t steps, const Bf16* a, const Tiles& left, const Bf16* b,
                                 const Tiles& right, float* c, int64_t c_row) {
  Hardware::template zero<0>();
  Hardware::template zero<1>();
  Hardware::template zero<2>();
  Hardware::template zero<3>();
  for (int64_t s = 0; s < steps; ++s, a += left.step, b += right.step) {
    multiply_small_step<Hardware, kRows, kColumns>(a, left, b, right);
    if constexpr (kPlanes == 2) {
      multiply_small_step<Hardware, kRows, kColumns>(a, left, b + right.plane, right);
      multiply_small_step<Hardware, kRows, kColumns>(a + left.plane, left, b, right);
    }
  }
  Hardware::template store<0>(c, c_row * 4);
  if constexpr (kColumns == 2) Hardware::template store<1>(c + 16, c_row * 4);
  if constexpr (kRows == 2) Hardware::template store<2>(c + 16 * c_row, c_row * 4);
  if constexpr (kRows == 2 && kColumns == 2) Hardware::template store<3>(c + 16 * c_row + 16, c_row * 4);
}

// c = left right, in tiles of 16 x 16, `steps` steps deep
template <HasTiles Hardware, int kPlanes>
void multiply_small(int64_t row_tiles, int64_t column_tiles, int64_t steps, const Tiles& left,
                    const Tiles& right, float* c, int64_t c_row) {
  for (int64_t m = 0; m < row_tiles; m += 2)
    for (int64_t n = 0; n < column_tiles; n += 2) {
      const bool two_rows = m + 1 < row_tiles, two_columns = n + 1 < column_tiles;
      const auto block = two_rows ? (two_columns ? multiply_small_block<Hardware, kPlanes, 2, 2>
                                                 : multiply_small_block<Hardware, kPlanes, 2, 1>)
                                  : (two_columns ? multiply_small_block<Hardware, kPlanes, 1, 2>
                                                 : multiply_small_block<Hardware, kPlanes, 1, 1>);
      block(steps, left.data + m * left.tile, left, right.data + n * right.tile, right,
            c + m * 16 * c_row + n * 16, c_row);
    }
}

template <class Hardware, int kColumns>
inline void dot_small_block(int64_t steps, const Bf16* a, const Tiles& left, const Bf16* b,
                            const Tiles& right, float* c, int64_t c_row) {
  Vec sums[kDotRows][kColumns] = {};
  for (int64_t s = 0; s < steps; ++s, a += left.step, b += right.step)
    dot_step<Hardware>(a, left.row_bytes / 2, b, right.tile, sums);
#pragma GCC unroll 8
  for (int r = 0; r < kDotRows; ++r)
#pragma GCC unroll 2
    for (int n = 0; n < kColumns; ++n) store(c + r * c_row + n * 16, sums[r][n]);
}

template <HasDots Hardware, int kPlanes>
void multiply_small(int64_t row_tiles, int64_t column_tiles, int64_t steps, const Tiles& left,
                    const Tiles& right, float* c, int64_t c_row) {
  static_assert(kPlanes == 1, "three dot products for a pair are slower than float32");
  for (int64_t m = 0; m < row_tiles * 16; m += kDotRows)
    for (int64_t n = 0; n < column_tiles; n += 2) {
      const auto block = n + 1 < column_tiles ? dot_small_block<Hardware, 2> : dot_small_block<Hardware, 1>;
      block(steps, left.data + m / 16 * left.tile + m % 16 * (left.row_bytes / 2), left,
            right.data + n * right.tile, right, c + m * c_row + n * 16, c_row);
    }
}

}  // namespace
}  // namespace aha
