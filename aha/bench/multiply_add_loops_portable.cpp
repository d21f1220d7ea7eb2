#include "aha/bench/multiply_add_loops.h"

namespace aha {

double multiply_add_loop_portable(int64_t rounds) {
  constexpr int kChains = 12;  // eight sums are in flight with two units of latency 4
  float sums[kChains] = {};
  const float factor = 0.5f;
  for (int64_t r = 0; r < rounds; ++r)
    for (float& sum : sums) {
      sum = sum * factor + 1.0f;
      __asm__ volatile("" : "+x"(sum));  // neither vectorized nor left out
    }
  return 2.0 * kChains * static_cast<double>(rounds);
}

}  // namespace aha
