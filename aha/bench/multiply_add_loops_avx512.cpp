#include <immintrin.h>

#include "aha/bench/multiply_add_loops.h"

namespace aha {

double multiply_add_loop_avx512(int64_t rounds) {
  constexpr int kChains = 16;  // 16 of the 32 registers: eight sums are in flight with two units of latency 4
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0f);
  const __m512 factor = _mm512_set1_ps(0.5f), one = _mm512_set1_ps(1.0f);
  for (int64_t r = 0; r < rounds; ++r)
    for (auto& sum : sums) {
      sum = _mm512_fmadd_ps(sum, factor, one);
      __asm__ volatile("" : "+v"(sum));  // not left out
    }
  return 2.0 * kChains * 16 * static_cast<double>(rounds);
}

}  // namespace aha
