#include "aha/kernels/core/transpose_vector.h"
#include "aha/kernels/weight_gradient/weight_gradient_vector.h"

namespace aha {
namespace {

// Rounding to bf16 by integers: this file also serves machines whose AVX-512 has no conversion.
struct Integers {
  static __m512i narrowed(Vec first, Vec second) {
    const auto half = [](Vec x) {
      const __m512i bits = _mm512_castps_si512(x);
      const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
      const __m512i rounded =
          _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
      const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
      return _mm512_cvtepi32_epi16(
          _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), rounded, quiet));
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(first)), half(second), 1);
  }
};

constexpr int64_t kBlock = kStrip * kStrip;

// Rows 2p and 2p + 1 of a 32 x 32 block, element by element: columns 0..15 to first, 16..31 to second.
struct Pair {
  __m512i first, second;
};
inline Pair interleaved(const Bf16* block, int64_t p, int64_t live) {
  const auto row = [&](int64_t r) {
    return r < live ? _mm512_load_si512(block + r * kStrip) : _mm512_setzero_si512();
  };
  const __m512i even = row(2 * p), odd = row(2 * p + 1);
  return {interleaved(_mm512_castsi512_si256(even), _mm512_castsi512_si256(odd)),
          interleaved(_mm512_extracti64x4_epi64(even, 1), _mm512_extracti64x4_epi64(odd, 1))};
}

}  // namespace

void weight_gradient_avx512(int64_t rows, const WeightGradient& job) {
  weight_gradient_f32(rows, job);
  if (job.bias) add_column_sums<FormF32>(rows, *job.dy, job.bias);
}

// A tile of the left operand holds 16 columns of dy, each as 16 pairs of rows: the interleaved rows,
// transposed as 32-bit elements.
void transpose_tiles_avx512(int64_t rows, const Activations& dy, Activations& left) {
  for (int64_t r0 = 0; r0 < rows; r0 += kStrip)
    for (int64_t s = 0; s < dy.strips(); ++s)
      for (int64_t plane = 0; plane < dy.planes(); ++plane) {
        const Bf16* from = dy.bf16() + dy.strip_offset(r0, s) + plane * kBlock;
        Bf16* to = left.bf16() + left.strip_offset(s * kStrip, r0 / kStrip) + plane * kBlock;
        __m512i first[16], second[16];
        for (int p = 0; p < 16; ++p) {
          const Pair pair = interleaved(from, p, rows - r0);
          first[p] = pair.first;
          second[p] = pair.second;
        }
        transpose(first);
        transpose(second);
        for (int n = 0; n < 16; ++n) {
          _mm512_store_si512(to + n * kStrip, first[n]);
          _mm512_store_si512(to + (16 + n) * kStrip, second[n]);
        }
      }
}

void interleave_tiles_avx512(int64_t rows, const Activations& x, PackedWeights& right) {
  const int64_t steps = right.padded_inputs() / kStrip;
  for (int64_t r0 = 0; r0 < rows; r0 += kStrip)
    for (int64_t s = 0; s < x.strips(); ++s)
      for (int64_t plane = 0; plane < x.planes(); ++plane) {
        const Bf16* from = x.bf16() + x.strip_offset(r0, s) + plane * kBlock;
        Bf16* to = right.bf16() + ((s * steps + r0 / kStrip) * x.planes() + plane) * kBlock;
        for (int p = 0; p < 16; ++p) {
          const Pair pair = interleaved(from, p, rows - r0);
          _mm512_store_si512(to + p * kStrip, pair.first);
          _mm512_store_si512(to + kBlock / 2 + p * kStrip, pair.second);
        }
      }
}

void add_column_sums_avx512(int64_t rows, const Activations& dy, float* sums) {
  if (dy.format() == Format::kBf16)
    add_column_sums<FormBf16<Integers>>(rows, dy, sums);
  else
    add_column_sums<FormBf16Pair<Integers>>(rows, dy, sums);
}

void operand_from_rows_avx512(int64_t rows, const float* x, int64_t stride, Activations& out) {
  const auto convert = [&](const auto& strips) {
    const int64_t whole = out.columns() / kStrip, rest = out.columns() % kStrip;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t s = 0; s < whole; ++s) strips.put(r, s, load_strip(x + r * stride + s * kStrip));
      if (rest == 0) continue;
      alignas(64) float last[kStrip] = {};
      for (int64_t c = 0; c < rest; ++c) last[c] = x[r * stride + whole * kStrip + c];
      strips.put(r, whole, load_strip(last));
    }
  };
  if (out.format() == Format::kBf16)
    convert(StripsOf<FormBf16<Integers>>(out));
  else
    convert(StripsOf<FormBf16Pair<Integers>>(out));
}

}  // namespace aha
