#include <immintrin.h>

#include <cstring>

#include "aha/image/resize_passes.h"

namespace aha {
namespace {

// sum_high * 2^12 + sum_low, rounded, shifted; not yet clipped.
inline __m256i levels_from_sums(__m256i high, __m256i low) {
  const __m256i half = _mm256_set1_epi32(1 << (kWeightBits - 1));
  const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, kLowBits), low), half);
  return _mm256_srai_epi32(sum, kWeightBits);
}

// Four taps of three channels in one load: the lower half holds the pairs (tap 0, tap 1), the upper half (tap
// 2, tap 3), as (r, r), (g, g), (b, b), nothing.
void horizontal(const uint8_t* in, const TapTable& taps, int out_width, uint8_t* out) {
  const __m256i pairs = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                                         6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
  const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  const auto weights = [&](const int16_t* at) {
    const __m128i four = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    return _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(four), spread);
  };
  for (int x = 0; x < out_width; ++x) {
    const size_t at = static_cast<size_t>(x) * taps.stride;
    const uint8_t* pixel = in + static_cast<size_t>(taps.first[x]) * 3;
    __m256i high = _mm256_setzero_si256(), low = high;
    for (int t = 0; t < taps.count[x]; t += kTapGroup, pixel += 3 * kTapGroup) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixel));
      const __m256i values = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), pairs);
      high = _mm256_add_epi32(high, _mm256_madd_epi16(values, weights(taps.high.data() + at + t)));
      low = _mm256_add_epi32(low, _mm256_madd_epi16(values, weights(taps.low.data() + at + t)));
    }
    const __m128i half = _mm_set1_epi32(1 << (kWeightBits - 1));
    const __m128i high4 = _mm_add_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    const __m128i low4 = _mm_add_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
    const __m128i sum = _mm_add_epi32(_mm_add_epi32(_mm_slli_epi32(high4, kLowBits), low4), half);
    const __m128i level = _mm_srai_epi32(sum, kWeightBits);
    const __m128i packed = _mm_packus_epi16(_mm_packs_epi32(level, level), level);
    const auto rgb = static_cast<uint32_t>(_mm_cvtsi128_si32(packed));
    std::memcpy(out + static_cast<size_t>(x) * 3, &rgb, 3);
  }
}

// 32 bytes of the row at once, two taps per multiplication.
void vertical(const uint8_t* in, size_t row_bytes, const TapTable& taps, int y, uint8_t* out) {
  const size_t at = static_cast<size_t>(y) * taps.stride;
  const int count = taps.count[y];
  const uint8_t* top = in + static_cast<size_t>(taps.first[y]) * row_bytes;
  const auto pair = [](const int16_t* weights) {
    int32_t two;
    std::memcpy(&two, weights, sizeof two);
    return _mm256_set1_epi32(two);
  };
  size_t x = 0;
  for (; x + 32 <= row_bytes; x += 32) {
    __m256i high[4] = {}, low[4] = {};
    for (int t = 0; t < count; t += 2) {
      const uint8_t* row = top + static_cast<size_t>(t) * row_bytes + x;
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row));
      // An odd last tap has a zero beside it; the row after it may not exist.
      const __m256i b = t + 1 < count ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + row_bytes))
                                      : _mm256_setzero_si256();
      const __m256i even = _mm256_unpacklo_epi8(a, b), odd = _mm256_unpackhi_epi8(a, b);
      const __m256i zero = _mm256_setzero_si256();
      // (a, b) as 16-bit pairs: bytes 0-3 | 16-19, 4-7 | 20-23, 8-11 | 24-27, 12-15 | 28-31
      const __m256i ab[4] = {_mm256_unpacklo_epi8(even, zero), _mm256_unpackhi_epi8(even, zero),
                             _mm256_unpacklo_epi8(odd, zero), _mm256_unpackhi_epi8(odd, zero)};
      const __m256i wh = pair(taps.high.data() + at + t), wl = pair(taps.low.data() + at + t);
      for (int i = 0; i < 4; ++i) {
        high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(ab[i], wh));
        low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(ab[i], wl));
      }
    }
    // Packing works within halves, as the unpacking did: the order comes out right.
    const __m256i first =
        _mm256_packs_epi32(levels_from_sums(high[0], low[0]), levels_from_sums(high[1], low[1]));
    const __m256i second =
        _mm256_packs_epi32(levels_from_sums(high[2], low[2]), levels_from_sums(high[3], low[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), _mm256_packus_epi16(first, second));
  }
  for (; x < row_bytes; ++x) {
    int32_t sum = 1 << (kWeightBits - 1);
    for (int t = 0; t < count; ++t) sum += taps.weight[at + t] * top[static_cast<size_t>(t) * row_bytes + x];
    const int32_t level = sum >> kWeightBits;
    out[x] = static_cast<uint8_t>(level < 0 ? 0 : level > 255 ? 255 : level);
  }
}

}  // namespace

const ResizePasses& avx2_passes() {
  static constexpr ResizePasses passes{horizontal, vertical};
  return passes;
}

}  // namespace aha
