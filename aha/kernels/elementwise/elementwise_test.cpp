#include "aha/kernels/elementwise/elementwise.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

using checks::all_within;
using checks::random_floats;

class Elementwise : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
  const KernelSet& reference = reference_kernels(Format::kF32);
};

TEST_P(Elementwise, GeluMatchesErrorFunction) {
  for (int64_t n : {1, 7, 8, 9, 15, 16, 17, 4001}) {
    std::vector<float> x(n);
    for (int64_t i = 0; i < n; ++i)
      x[i] = n == 1 ? 0.5f : -12.0f + 24.0f * static_cast<float>(i) / static_cast<float>(n - 1);
    std::vector<float> y(n), slope(n), expected(n), expected_slope(n);
    gelu(kernels, n, x.data(), y.data(), slope.data());
    gelu(reference, n, x.data(), expected.data(), expected_slope.data());
    // Phi within 1.5e-7 and a few roundings.
    EXPECT_TRUE(all_within(y, expected, [&](size_t i) {
      return (1.5e-7 + 4 * checks::kF32Epsilon) * std::abs(x[i]) + 1e-37;
    })) << n;
    EXPECT_TRUE(all_within(slope, expected_slope, [&](size_t) { return 1.5e-7 + 8 * checks::kF32Epsilon; }))
        << n;
    std::vector<float> without(n);
    gelu(kernels, n, x.data(), without.data(), nullptr);
    EXPECT_EQ(without, y);
  }
}

TEST_P(Elementwise, SoftmaxRowsSumToOneAndMatchReference) {
  for (int64_t columns : {1, 7, 15, 16, 17, 31, 32, 33, 1000}) {
    const int64_t rows = 3, stride = columns + 2;
    const auto x = random_floats(rows * stride, 1, 5);
    auto found = x, expected = x;
    std::vector<float> sums(rows), expected_sums(rows);
    softmax_rows(kernels, rows, columns, found.data(), stride, sums.data());
    softmax_rows(reference, rows, columns, expected.data(), stride, expected_sums.data());
    // A score of size 20 is subtracted and exponentiated: relative error 20 eps and some units.
    EXPECT_TRUE(all_within(found, expected, [&](size_t i) {
      return 40 * checks::kF32Epsilon * std::abs(expected[i]) + 1e-37;
    })) << columns;
    EXPECT_TRUE(all_within(sums, expected_sums, [&](size_t i) {
      return 4 * checks::kF32Epsilon * (1 + std::abs(expected_sums[i]));
    }));
    for (int64_t r = 0; r < rows; ++r)
      EXPECT_NEAR(std::accumulate(found.begin() + r * stride, found.begin() + r * stride + columns, 0.0), 1.0,
                  1e-6);
  }
}

TEST_P(Elementwise, NanStaysNan) {
  std::vector<float> x = {1, std::numeric_limits<float>::quiet_NaN(), 3}, y(3), slope(3);
  gelu(kernels, 3, x.data(), y.data(), slope.data());
  EXPECT_FALSE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]) && std::isnan(slope[1]));
  softmax_rows(kernels, 1, 3, x.data(), 3, nullptr);
  for (float value : x) EXPECT_TRUE(std::isnan(value));
}

INSTANTIATE_TEST_SUITE_P(Sets, Elementwise, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

}  // namespace
}  // namespace aha
