#include <immintrin.h>

#include "aha/kernels/rope/rope_loops.h"

namespace aha {
namespace {

__m512 float_from(const Bf16* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
}

// Rounded to nearest even by integers: not every AVX-512 machine has the conversion. Queries and keys of a finite network are finite.
void store_bf16(Bf16* p, __m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(rounded));
}

struct F32Row {
  float* at;
  __m512 load(int64_t i) const { return _mm512_loadu_ps(at + i); }
  void store(int64_t i, __m512 x) const { _mm512_storeu_ps(at + i, x); }
};
struct Bf16Row {
  Bf16* at;
  __m512 load(int64_t i) const { return float_from(at + i); }
  void store(int64_t i, __m512 x) const { store_bf16(at + i, x); }
};
struct Bf16PairRow {
  Bf16* at;
  int64_t plane;
  __m512 load(int64_t i) const { return _mm512_add_ps(float_from(at + i), float_from(at + plane + i)); }
  void store(int64_t i, __m512 x) const {
    store_bf16(at + i, x);
    store_bf16(at + plane + i, _mm512_sub_ps(x, float_from(at + i)));
  }
};

template <class Row>
void rotate_row(const Row& row, int64_t width, const float* cos, const float* sin) {
  const int64_t half = width / 2;
  for (int64_t i = 0; i < half; i += 16) {
    const __m512 low = row.load(i), high = row.load(i + half);
    row.store(i, _mm512_fnmadd_ps(high, _mm512_loadu_ps(sin + i), _mm512_mul_ps(low, _mm512_loadu_ps(cos + i))));
    row.store(i + half, _mm512_fmadd_ps(low, _mm512_loadu_ps(sin + i + half), _mm512_mul_ps(high, _mm512_loadu_ps(cos + i + half))));
  }
}

}  // namespace

void rotate_heads_avx512(int64_t images, int64_t first_token, const float* cos, const float* sin, Heads& heads) {
  const int64_t width = heads.width();
  for (int64_t b = 0; b < images; ++b)
    for (int64_t h = 0; h < heads.heads(); ++h)
      for (int64_t t = first_token; t < heads.tokens(); ++t) {
        const int64_t offset = heads.offset(b, h) + t * width, place = (t - first_token) * width;
        switch (heads.format()) {
          case Format::kF32:
            rotate_row(F32Row{heads.f32() + offset}, width, cos + place, sin + place);
            break;
          case Format::kBf16:
            rotate_row(Bf16Row{heads.bf16() + offset}, width, cos + place, sin + place);
            break;
          case Format::kBf16Pair:
            rotate_row(Bf16PairRow{heads.bf16() + offset, heads.plane()}, width, cos + place, sin + place);
            break;
        }
      }
}

}  // namespace aha
