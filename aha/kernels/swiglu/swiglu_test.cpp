#include "aha/kernels/swiglu/swiglu.h"

#include <gtest/gtest.h>

#include <cmath>

#include "aha/base/error.h"
#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

constexpr int64_t kRows = 35, kHalf = 96;

class SwigluOn : public ::testing::TestWithParam<const KernelSet*> {};
INSTANTIATE_TEST_SUITE_P(Sets, SwigluOn, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

// Within a few roundings of the exact value, which is at most as large as the product of its factors.
TEST_P(SwigluOn, ValuesAndDerivativesMatchTheFormula) {
  const Format format = GetParam()->format;
  Activations gates = checks::random_operand(format, kRows, 2 * kHalf, 1);
  gates.set(0, 0, -200.f);  // closed, open, and nothing in between
  gates.set(0, 1, 200.f);
  gates.set(0, 2, 0.f);
  const Activations dout = checks::random_operand(format, kRows, kHalf, 2);
  Activations out(format, kRows, kHalf), dgates(format, kRows, 2 * kHalf);
  swiglu(*GetParam(), kRows, gates, out);
  swiglu_backward(*GetParam(), kRows, gates, dout, dgates);
  const double epsilon = checks::storing_epsilon(format) + 16 * checks::kF32Epsilon;
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < kHalf; ++c) {
      const double a = gates.at(r, c), b = gates.at(r, c + kHalf), g = dout.at(r, c);
      const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
      const double step = 1e-4, slope = (silu(a + step) - silu(a - step)) / (2 * step);
      EXPECT_NEAR(out.at(r, c), silu(a) * b, epsilon * std::abs(a * b) + 1e-30) << r << " " << c;
      EXPECT_NEAR(dgates.at(r, c), g * b * slope, (epsilon * (1 + std::abs(a)) + 1e-8) * std::abs(g * b))
          << r << " " << c;
      EXPECT_NEAR(dgates.at(r, c + kHalf), g * silu(a), epsilon * std::abs(g * a) + 1e-30) << r << " " << c;
    }
}

TEST(Swiglu, RefusesGatesThatAreNotTwiceAsWide) {
  const KernelSet& kernels = best_kernel_set(Precision::kF32);
  Activations gates(kernels.format, 4, 64), out(kernels.format, 4, 64);
  EXPECT_THROW(swiglu(kernels, 4, gates, out), Error);
}

}  // namespace
}  // namespace aha
