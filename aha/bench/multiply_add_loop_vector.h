// The loop of multiply_add_loops.h on vectors of the instruction set of the file that includes it.
#pragma once

#include "aha/kernels/core/vector.h"

namespace aha {
namespace {

// kChains sums, of which eight are in flight with two units of latency 4.
template <int kChains>
double multiply_add_loop(int64_t rounds) {
  Vec sums[kChains];
  for (auto& sum : sums) sum = splat(1.0f);
  const Vec factor = splat(0.5f), one = splat(1.0f);
  for (int64_t r = 0; r < rounds; ++r)
    for (auto& sum : sums) {
      sum = fma(sum, factor, one);
      __asm__ volatile("" : "+v"(sum));  // not left out
    }
  return 2.0 * kChains * kLanes * static_cast<double>(rounds);
}

}  // namespace
}  // namespace aha
