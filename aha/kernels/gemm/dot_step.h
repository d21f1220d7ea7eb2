// Eight rows of bf16 times 16 or 32 columns, 32 deep, in vector registers: one instruction adds the products
// of a pair of inputs to 16 sums.
//
// 8 x 2 vectors of sums hide the instruction's latency (6 cycles on Zen 4) and leave registers for the
// operands; ten loads a pair of inputs feed sixteen dot products.
#pragma once

#include <cstring>

#include "aha/kernels/core/bf16.h"
#include "aha/kernels/core/vector.h"

namespace aha {
namespace {

// dot(sums, x, w): sums + the products of 16 pairs.
template <class Hardware>
concept HasDots = requires(Vec sums, __m512i x) {
  Hardware::dot(sums, x, x);
};

constexpr int kDotRows = 8;

// sums += a b. a: rows of 32 elements, a_row elements apart; b: 16 pairs of 16 columns, the next 16 columns
// b_tile elements later.
template <class Hardware, int kColumns>
[[gnu::always_inline]] inline void dot_step(const Bf16* a, int64_t a_row, const Bf16* b, int64_t b_tile,
                                            Vec (&sums)[kDotRows][kColumns]) {
#pragma GCC unroll 4
  for (int pair = 0; pair < 16; ++pair) {
    __m512i w[kColumns];
#pragma GCC unroll 2
    for (int n = 0; n < kColumns; ++n) w[n] = _mm512_load_si512(b + n * b_tile + pair * 32);
#pragma GCC unroll 8
    for (int r = 0; r < kDotRows; ++r) {
      int x;
      std::memcpy(&x, a + r * a_row + pair * 2, 4);
#pragma GCC unroll 2
      for (int n = 0; n < kColumns; ++n) sums[r][n] = Hardware::dot(sums[r][n], _mm512_set1_epi32(x), w[n]);
    }
  }
}

}  // namespace
}  // namespace aha
