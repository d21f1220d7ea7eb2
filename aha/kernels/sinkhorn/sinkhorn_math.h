// exp, log and sums of several vectors, as the loops of Sinkhorn need them: exact to float32, and exp is zero
// where float32 ends, so that padding stays zero.
#pragma once

#include <string.h>

#include "aha/kernels/core/vector.h"

namespace aha {
namespace {

typedef float V8 __attribute__((vector_size(32)));

#if defined(__AVX512F__)
inline V8 halves(Vec x) {
  return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
         __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}
#elif defined(__AVX2__)
inline V8 halves(Vec x) {
  return x;
}
#endif

// The sums of N vectors, eight at a time by adding and transposing at once: 37 instead of 96 instructions, a
// quarter of a sweep's time at K = 196.
template <int N>
inline void write_sums(const Vec (&x)[N], float* out) {
  int n = 0;
#if defined(__AVX2__)
#pragma GCC unroll 6
  for (; n + 8 <= N; n += 8) {
    V8 two[4], four[2];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const V8 a = halves(x[n + 2 * k]), b = halves(x[n + 2 * k + 1]);
      two[k] = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) +
               __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    }
#pragma GCC unroll 2
    for (int k = 0; k < 2; ++k) {
      const V8 a = two[2 * k], b = two[2 * k + 1];
      four[k] = __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13) +
                __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    const V8 eight = __builtin_shufflevector(four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11) +
                     __builtin_shufflevector(four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
    memcpy(out + n, &eight, sizeof eight);
  }
#endif
#pragma GCC unroll 8
  for (; n < N; ++n) out[n] = reduce_add(x[n]);
}

// exp for x <= 88; 0 below -87, where float32 ends. x = n log 2 + r, |r| <= 0.35, and eight terms of the
// series: 1e-7.
inline Vec exp_of(Vec x) {
  const Vec magic =
      splat(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, which its low bits then hold
  const Vec rounded = x * 1.44269504f + magic;
  const Vec n = rounded - magic;
  const Vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Vec y = splat(1.0f / 5040);
  y = y * r + 1.0f / 720;
  y = y * r + 1.0f / 120;
  y = y * r + 1.0f / 24;
  y = y * r + 1.0f / 6;
  y = y * r + 0.5f;
  y = y * r + 1.0f;
  y = y * r + 1.0f;
  const UnsignedVec scaled = (UnsignedVec)y + (((UnsignedVec)rounded - (UnsignedVec)magic) << 23);
  return (Vec)(scaled & (UnsignedVec)(x > splat(-87.0f)));
}

// log of a positive normal number: x = 2^e m, m in [0.71, 1.42), log m = 2 atanh((m - 1) / (m + 1)); relative
// error 2e-7 also near 1.
inline Vec log_of(Vec x) {
  const IntVec shifted = (IntVec)x - splat_int(0x3f3504f3);  // sqrt(1/2)
  const IntVec e = shifted >> 23;
  const Vec m = (Vec)((IntVec)x - (shifted & splat_int(static_cast<int32_t>(0xff800000))));
  const Vec s = (m - 1.0f) / (m + 1.0f), q = s * s;
  Vec y = splat(2.0f / 9);
  y = y * q + 2.0f / 7;
  y = y * q + 2.0f / 5;
  y = y * q + 2.0f / 3;
  y = y * q + 2.0f;
  return y * s + __builtin_convertvector(e, Vec) * 0.693147181f;
}

}  // namespace
}  // namespace aha
