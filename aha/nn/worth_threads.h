// parallel_for where there is enough to do.
//
// The decoder of a 32 x 32 image is a chain of sixty small steps. Waking a second thread for each cost more
// than it brought: 2.7 ms of CPU time instead of 1.2 (cifar10-vit4's decoder, one image, two threads).
#pragma once

#include "aha/base/parallel.h"

namespace aha {

constexpr double kWorthThreads = 2e7;  // operations: 0.1 ms of one core

// The indices 0..n-1, `operations` all together.
template <class Body>
void parallel_if_worth(int64_t n, double operations, const Body& body) {
  if (operations >= kWorthThreads) return parallel_for(n, body);
  for (int64_t i = 0; i < n; ++i) body(i, 0);
}

}  // namespace aha
