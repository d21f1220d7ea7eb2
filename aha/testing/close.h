// Comparisons whose tolerance is computed, not guessed.
//
// A float32 sum of n products a_i b_i, taken in any order, misses the exact sum by about eps * sqrt(n) * |a|
// |b| and rarely by a few times that (the worst case has n for sqrt(n)). A test computes that bound from the
// very operands and compares with a double-precision result. Knows nothing of torch.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace aha::checks {

constexpr double kF32Epsilon = 0x1p-24;  // half a unit in the last place of 1

// norms: |a| |b| of the two vectors multiplied. epsilon: relative error of one product or addition.
inline double sum_bound(int64_t n, double norms, double epsilon = kF32Epsilon) {
  constexpr double kFewTimes = 6;
  return kFewTimes * epsilon * std::sqrt(static_cast<double>(n)) * norms + 1e-37;
}

inline double norm(std::span<const float> values) {
  double sum = 0;
  for (float x : values) sum += double{x} * x;
  return std::sqrt(sum);
}

// |a - b| / |b|, over all elements
inline double relative_distance(std::span<const float> a, std::span<const float> b) {
  double distance = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    distance += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{b[i]} * b[i];
  }
  return size > 0 ? std::sqrt(distance / size) : std::sqrt(distance);
}

// Every |found - expected| within bound(i); the message names the worst element. NaN is never within.
template <class Bound>
::testing::AssertionResult all_within(std::span<const float> found, std::span<const float> expected,
                                      Bound bound) {
  if (found.size() != expected.size())
    return ::testing::AssertionFailure()
           << "expected " << expected.size() << " values, found " << found.size();
  size_t worst = 0, outside = 0;
  double worst_ratio = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const double ratio = std::abs(double{found[i]} - expected[i]) / bound(i);
    if (!(ratio <= 1)) ++outside;
    if (!(ratio <= worst_ratio)) worst = i, worst_ratio = ratio;
  }
  if (outside == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << outside << " of " << found.size() << " values outside their bound; worst at " << worst
         << ": expected " << expected[worst] << " within " << bound(worst) << ", found " << found[worst];
}

}  // namespace aha::checks
