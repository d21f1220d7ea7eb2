// Transposing in vector registers, and with it the packs of weights: 32 x 32 elements lie together in every
// form, and a block of the one pack becomes a block of the other.
#pragma once

#include "aha/kernels/core/packed_weights.h"
#include "aha/kernels/core/vector.h"

namespace aha {
namespace {

#if defined(__AVX512F__)

// 16 x 16 elements of 32 bits
inline void transpose(__m512i (&m)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      m[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
      m[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
    }
  // Now 128-bit lane l of m[4 a + c] holds column 4 l + c of rows 4 a ... 4 a + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i low = _mm512_shuffle_i32x4(m[c], m[4 + c], 0x88);
    const __m512i low_odd = _mm512_shuffle_i32x4(m[c], m[4 + c], 0xdd);
    const __m512i high = _mm512_shuffle_i32x4(m[8 + c], m[12 + c], 0x88);
    const __m512i high_odd = _mm512_shuffle_i32x4(m[8 + c], m[12 + c], 0xdd);
    t[c] = _mm512_shuffle_i32x4(low, high, 0x88);
    t[4 + c] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
    t[8 + c] = _mm512_shuffle_i32x4(low, high, 0xdd);
    t[12 + c] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
  }
  for (int i = 0; i < 16; ++i) m[i] = t[i];
}

// 16 rows of 16 dwords, rows stride_bytes apart -> their transpose, rows to_stride_bytes apart.
inline void transpose_16x16(const void* from, int64_t stride_bytes, void* to, int64_t to_stride_bytes = 64) {
  __m512i m[16];
  for (int i = 0; i < 16; ++i) m[i] = _mm512_loadu_si512(static_cast<const char*>(from) + i * stride_bytes);
  transpose(m);
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(static_cast<char*>(to) + i * to_stride_bytes, m[i]);
}

inline __m512i interleaved(__m256i even, __m256i odd) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(even), _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
}

// (tokens x width) -> right operand: [token / 32][width / 16] tiles; tokens a multiple of 32
inline void interleave(const Bf16* x, int64_t tokens, int64_t width, Bf16* tiles) {
  for (int64_t t = 0; t < tokens; t += 32)
    for (int64_t c = 0; c < width; c += 16, tiles += kTileElements)
      for (int64_t pair = 0; pair < 16; ++pair) {
        const Bf16* row = x + (t + 2 * pair) * width + c;
        const auto half = [](const Bf16* p) {
          return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
        };
        _mm512_store_si512(tiles + pair * 32, interleaved(half(row), half(row + width)));
      }
}

// 32 rows of 32 floats
inline void transpose_block(const float* from, float* to) {
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      transpose_16x16(from + i * 16 * kPanel + j * 16, 4 * kPanel, to + j * 16 * kPanel + i * 16, 4 * kPanel);
}

// Pairs of inputs of 32 outputs -> pairs of outputs of 32 inputs. Tiles of 16 outputs become rows of 32
// inputs, which are interleaved again.
inline void transpose_block(const Bf16* from, Bf16* to) {
  alignas(64) Bf16 rows[kPanel * kPanel];
  transpose_16x16(from, 64, rows);
  transpose_16x16(from + kTileElements, 64, rows + kTileElements);
  interleave(rows, kPanel, kPanel, to);
}

#else

inline void transpose_8x8(const float* from, float* to, int64_t stride = kPanel) {
  __m256 a[8], b[8];
  for (int i = 0; i < 8; ++i) a[i] = load(from + i * stride);
  for (int i = 0; i < 8; i += 2) {
    b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
  }
  // a[4 g + c] holds, in half h, column 4 h + c of rows 4 g .. 4 g + 3
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
    a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
    a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
    a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
  }
  for (int c = 0; c < 4; ++c) {
    store(to + c * kPanel, _mm256_permute2f128_ps(a[c], a[4 + c], 0x20));
    store(to + (4 + c) * kPanel, _mm256_permute2f128_ps(a[c], a[4 + c], 0x31));
  }
}

inline void transpose_block(const float* from, float* to) {
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) transpose_8x8(from + i * 8 * kPanel + j * 8, to + j * 8 * kPanel + i * 8);
}

#endif

template <class Element>
void transpose_blocks(const Element* from, Element* to, const PackedWeights& shape, int64_t first,
                      int64_t end) {
  constexpr int64_t kBlock = kPanel * kPanel;
  const int64_t across = shape.padded_inputs() / kPanel, down = shape.padded_outputs() / kPanel,
                planes = shape.planes();
  to += first * down * planes * kBlock;
  for (int64_t k = first; k < end; ++k)
    for (int64_t n = 0; n < down; ++n)
      for (int64_t plane = 0; plane < planes; ++plane, to += kBlock)
        transpose_block(from + ((n * across + k) * planes + plane) * kBlock, to);
}

inline void transpose_weights_vector(const PackedWeights& from, PackedWeights& to, int64_t first,
                                     int64_t end) {
#if defined(__AVX512F__)
  if (from.format() != Format::kF32) return transpose_blocks(from.bf16(), to.bf16(), from, first, end);
#endif
  transpose_blocks(from.f32(), to.f32(), from, first, end);
}

}  // namespace
}  // namespace aha
