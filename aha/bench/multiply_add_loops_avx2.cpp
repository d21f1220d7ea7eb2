#include <immintrin.h>

#include "aha/bench/multiply_add_loops.h"

namespace aha {

double multiply_add_loop_avx2(int64_t rounds) {
  constexpr int kChains = 12;  // 12 of the 16 registers: eight sums are in flight with two units of latency 4
  __m256 sums[kChains];
  for (auto& sum : sums) sum = _mm256_set1_ps(1.0f);
  const __m256 factor = _mm256_set1_ps(0.5f), one = _mm256_set1_ps(1.0f);
  for (int64_t r = 0; r < rounds; ++r)
    for (auto& sum : sums) {
      sum = _mm256_fmadd_ps(sum, factor, one);
      __asm__ volatile("" : "+x"(sum));  // not left out
    }
  return 2.0 * kChains * 8 * static_cast<double>(rounds);
}

}  // namespace aha
