// A row of Gumbel noise (gumbel.h), a vector of Philox blocks at a time.
#pragma once

#include "aha/kernels/sinkhorn/sinkhorn_loops.h"
#include "aha/kernels/sinkhorn/sinkhorn_math.h"

namespace aha {
namespace {

// The 64-bit products of the lower halves of 64-bit lanes; what the upper halves hold does not matter.
inline WideVec wide_product(WideVec a, uint32_t b) {
#if defined(__AVX512F__)
  return (WideVec)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
  return (WideVec)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#else
  return (a & 0xffffffff) * b;
#endif
}

// Philox4x32-10 as Rng::block, for the counters in the lanes of `counter`.
struct PhiloxWords {
  WideVec word[4];  // in the lower halves
};
inline PhiloxWords philox(WideVec counter, uint64_t stream, uint64_t seed) {
  WideVec c0 = counter, c1 = counter >> 32, c2 = WideVec{} + stream, c3 = WideVec{} + (stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const WideVec p0 = wide_product(c0, 0xD2511F53), p1 = wide_product(c2, 0xCD9E8D57);
    c0 = (p1 >> 32) ^ c1 ^ k0;
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ k1;
    c3 = p0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

void gumbel_row(uint64_t seed, uint64_t stream, int32_t K, int64_t row, float* out) {
  const int32_t blocks = gumbel_blocks(K);
  WideVec even_lanes{};
  for (int l = 0; l < kLanes / 2; ++l) even_lanes[l] = 2 * l;
  for (int32_t first = 0; first < blocks; first += kLanes) {
    // Even counters in the lower, odd ones in the upper halves: together they are in order.
    const WideVec counter = even_lanes + static_cast<uint64_t>(row * blocks + first);
    const PhiloxWords even = philox(counter, stream, seed), odd = philox(counter + 1, stream, seed);
    for (int w = 0; w < 4; ++w) {
      const WideVec bits = ((even.word[w] & 0xffffffff) | (odd.word[w] << 32)) >> 9 & 0x007fffff007fffff;
      const Vec uniform = (__builtin_convertvector((IntVec)bits, Vec) + 0.5f) * 0x1p-23f;
      store(out + w * blocks + first, -log_of(-log_of(uniform)));
    }
  }
}

}  // namespace
}  // namespace aha
