#include <immintrin.h>

#include "aha/bench/multiply_add_loops.h"

namespace aha {

double multiply_add_loop_avx512bf16(int64_t rounds) {
  constexpr int kChains = 16;  // 12 sums are in flight with two units of latency 6
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0f);
  const auto half = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f00));
  for (int64_t r = 0; r < rounds; ++r)
    for (auto& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, half, half);
      __asm__ volatile("" : "+v"(sum));  // not left out
    }
  return 2.0 * kChains * 32 * static_cast<double>(rounds);
}

}  // namespace aha
