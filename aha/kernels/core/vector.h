// Vectors of float32 for the instruction set a file is compiled for: 16 lanes with AVX-512, 8 with AVX2, 4
// else. They are vectors of the compiler: +, -, *, / and comparisons work lane by lane.
//
// Only the .cpp files of one instruction set (*_avx2.cpp, ...) and sinkhorn_portable.cpp include this and the
// headers over it. All is in an unnamed namespace: the same function compiled for two instruction sets must
// stay two functions, or the linker would keep one of them for every CPU.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstdint>

#include "aha/kernels/core/activations.h"

namespace aha {
namespace {

#if defined(__AVX512F__)
using Vec = __m512;
#elif defined(__AVX2__)
using Vec = __m256;
#else
using Vec = float __attribute__((vector_size(16)));
#endif
constexpr int kLanes = sizeof(Vec) / sizeof(float);

// What the intrinsics load and store. With __builtin_memcpy in its place gcc 12 kept one operand of the
// convolution on the stack, which made it 13 % slower.
using UnalignedVec = Vec __attribute__((aligned(alignof(float)), may_alias));
inline Vec load(const float* p) {
  return *reinterpret_cast<const UnalignedVec*>(p);
}
inline void store(float* p, Vec x) {
  *reinterpret_cast<UnalignedVec*>(p) = x;
}
inline Vec splat(float x) {
  return x - Vec{};
}

#if defined(__AVX512F__)

inline Vec fma(Vec a, Vec b, Vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Vec fnma(Vec a, Vec b, Vec c) {
  return _mm512_fnmadd_ps(a, b, c);
}  // c - a * b
inline Vec abs(Vec x) {
  return _mm512_abs_ps(x);
}
inline Vec max(Vec a, Vec b) {
  return _mm512_max_ps(a, b);
}  // b where either is NaN
inline float reduce_add(Vec x) {
  return _mm512_reduce_add_ps(x);
}
inline float reduce_max(Vec x) {
  return _mm512_reduce_max_ps(x);
}
inline Vec round_to_integer(Vec x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Vec times_power_of_two(Vec x, Vec n) {
  return _mm512_scalef_ps(x, n);
}
inline Vec gather(const float* table, const int32_t* index) {
  return _mm512_i32gather_ps(_mm512_loadu_si512(index), table, 4);
}
// 1 / x, one Newton step from 14 bits; x > 0.
inline Vec reciprocal(Vec x) {
  const Vec guess = _mm512_rcp14_ps(x);
  return guess * fnma(x, guess, splat(2.0f));
}
// x >= 0 ? a : b, per lane
inline Vec where_not_negative(Vec x, Vec a, Vec b) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GE_OQ), b, a);
}

#elif defined(__AVX2__)

inline Vec fma(Vec a, Vec b, Vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Vec fnma(Vec a, Vec b, Vec c) {
  return _mm256_fnmadd_ps(a, b, c);
}  // c - a * b
inline Vec abs(Vec x) {
  return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
}
inline Vec max(Vec a, Vec b) {
  return _mm256_max_ps(a, b);
}  // b where either is NaN
inline float reduce_add(Vec x) {
  __m128 half = _mm256_castps256_ps128(x) + _mm256_extractf128_ps(x, 1);
  half = half + _mm_movehl_ps(half, half);
  return _mm_cvtss_f32(_mm_add_ss(half, _mm_shuffle_ps(half, half, 1)));
}
inline float reduce_max(Vec x) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_shuffle_ps(half, half, 1)));
}
inline Vec round_to_integer(Vec x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// n in -126..127
inline Vec times_power_of_two(Vec x, Vec n) {
  const __m256i exponent =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return x * _mm256_castsi256_ps(exponent);
}
inline Vec gather(const float* table, const int32_t* index) {
  return _mm256_i32gather_ps(table, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)), 4);
}
inline Vec reciprocal(Vec x) {
  return splat(1.0f) / x;
}
inline Vec where_not_negative(Vec x, Vec a, Vec b) {
  return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GE_OQ));
}

#else  // any CPU: the little that sinkhorn/ needs

inline float reduce_add(Vec x) {
  return (x[0] + x[2]) + (x[1] + x[3]);
}

#endif

// The same bits as other lanes.
using IntVec = int32_t __attribute__((vector_size(sizeof(Vec)), may_alias));
using UnsignedVec = uint32_t __attribute__((vector_size(sizeof(Vec)), may_alias));
using WideVec = uint64_t __attribute__((vector_size(sizeof(Vec)), may_alias));
using DoubleVec = double __attribute__((vector_size(sizeof(Vec)), may_alias));

inline IntVec splat_int(int32_t x) {
  return x - IntVec{};
}
inline IntVec lane_numbers() {
  IntVec lanes{};
  for (int l = 0; l < kLanes; ++l) lanes[l] = l;
  return lanes;
}
// The first `count` lanes, zeros beyond.
inline Vec first_lanes(Vec x, int count) {
  return (Vec)((IntVec)x & (lane_numbers() < splat_int(count)));
}

#if defined(__AVX2__)

// e^x for x up to about 80; below -87 it stays at e^-87. NaN stays NaN.
// x = n ln 2 + r; e^r by a polynomial of degree 6, fitted on |r| <= ln 2 / 2 with relative error 4e-9.
inline Vec exponential(Vec x) {
  x = max(splat(-87.0f), x);
  const Vec n = round_to_integer(x * splat(1.44269504f));
  Vec r = fnma(n, splat(0.693359375f), x);
  r = fnma(n, splat(-2.12194440e-4f), r);
  Vec y = splat(1.375138178e-3f);
  y = fma(y, r, splat(8.368923329e-3f));
  y = fma(y, r, splat(4.166953266e-2f));
  y = fma(y, r, splat(1.666651815e-1f));
  y = fma(y, r, splat(4.999998808e-1f));
  y = fma(y, r, splat(1.0f));
  y = fma(y, r, splat(1.0f));
  return times_power_of_two(y, n);
}

struct GeluParts {
  Vec density_root;  // e^(-x^2 / 2)
  Vec distribution;  // Phi(x)
};

// Phi(-|x|) = (a1 t + ... + a5 t^5) / 2 * e^(-x^2 / 2), t = 1 / (1 + p |x| / sqrt 2); Abramowitz &
// Stegun 7.1.26.
inline GeluParts gelu_parts(Vec x) {
  const Vec t = reciprocal(fma(abs(x), splat(0.3275911f * 0.70710678f), splat(1.0f)));
  Vec tail = splat(0.5f * 1.061405429f);
  tail = fma(tail, t, splat(0.5f * -1.453152027f));
  tail = fma(tail, t, splat(0.5f * 1.421413741f));
  tail = fma(tail, t, splat(0.5f * -0.284496736f));
  tail = fma(tail, t, splat(0.5f * 0.254829592f));
  const Vec e = exponential(x * x * splat(-0.5f));
  tail = tail * t * e;
  return {e, where_not_negative(x, splat(1.0f) - tail, tail)};
}

// 32 columns of one row.
constexpr int kVecs = kPanel / kLanes;
struct Panel {
  Vec v[kVecs];
};

inline Panel load_panel(const float* p) {
  Panel s;
  for (int i = 0; i < kVecs; ++i) s.v[i] = load(p + i * kLanes);
  return s;
}
inline void store_panel(float* p, const Panel& s) {
  for (int i = 0; i < kVecs; ++i) store(p + i * kLanes, s.v[i]);
}
inline Panel operator+(const Panel& a, const Panel& b) {
  Panel s;
  for (int i = 0; i < kVecs; ++i) s.v[i] = a.v[i] + b.v[i];
  return s;
}
inline Panel operator*(const Panel& a, const Panel& b) {
  Panel s;
  for (int i = 0; i < kVecs; ++i) s.v[i] = a.v[i] * b.v[i];
  return s;
}
inline Panel operator*(const Panel& a, Vec factor) {
  Panel s;
  for (int i = 0; i < kVecs; ++i) s.v[i] = a.v[i] * factor;
  return s;
}

#endif

}  // namespace
}  // namespace aha
