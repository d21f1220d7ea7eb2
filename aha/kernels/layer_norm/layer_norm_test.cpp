#include "aha/kernels/layer_norm/layer_norm.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

using checks::all_within;
using checks::floats_of;
using checks::random_floats;
using checks::random_operand;

class LayerNorm : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
  const KernelSet& reference = reference_kernels(GetParam()->format);
  Format format = GetParam()->format;
};

TEST_P(LayerNorm, ForwardMatchesReference) {
  for (int64_t width : {32, 64, 96, 768})
    for (int64_t rows : {1, 2, 31, 33}) {
      const int64_t stride = width + 5;
      auto x = random_floats(rows * stride, 1);
      for (float& value : x) value += 3;  // a mean that has to be taken away
      Activations found(format, rows, width), expected(format, rows, width);
      std::vector<float> rstd(rows), expected_rstd(rows);
      layer_norm(kernels, rows, x.data(), stride, 1e-6f, found, rstd.data());
      layer_norm(reference, rows, x.data(), stride, 1e-6f, expected, expected_rstd.data());
      const auto values = floats_of(expected);
      // The mean of values around 3 errs by about 3 eps sqrt(width) / sqrt(width).
      const double bound = checks::sum_bound(1, 8);
      EXPECT_TRUE(all_within(floats_of(found), values,
                             [&](size_t i) {
                               return bound * (1 + std::abs(values[i])) +
                                      checks::storing_epsilon(format) * std::abs(values[i]);
                             }))
          << rows << " x " << width;
      EXPECT_TRUE(all_within(rstd, expected_rstd, [&](size_t) { return bound; }));
    }
}

TEST_P(LayerNorm, BackwardMatchesReferenceAndAddsToWhatIsThere) {
  for (int64_t width : {32, 96, 768})
    for (int64_t rows : {1, 31, 33}) {
      const int64_t stride = width + 7;
      const Activations xhat = random_operand(format, rows, width, 2);
      const auto gradient = random_floats(rows * stride, 3), rstd = random_floats(rows, 4),
                 start = random_floats(rows * stride, 5);
      auto found = start, expected = start;
      Activations operand(format, rows, width), expected_operand(format, rows, width);
      layer_norm_backward(kernels, rows,
                          {gradient.data(), stride, &xhat, rstd.data(), found.data(), stride, &operand});
      layer_norm_backward(
          reference, rows,
          {gradient.data(), stride, &xhat, rstd.data(), expected.data(), stride, &expected_operand});
      const double bound = checks::sum_bound(1, 16);
      EXPECT_TRUE(all_within(found, expected, [&](size_t i) { return bound * (1 + std::abs(expected[i])); }))
          << rows << " x " << width;
      const auto values = floats_of(expected_operand);
      EXPECT_TRUE(all_within(floats_of(operand), values, [&](size_t i) {
        return bound * (1 + std::abs(values[i])) + checks::storing_epsilon(format) * std::abs(values[i]);
      }));
    }
}

TEST_P(LayerNorm, RefusesWidthsThatAreNotWholeStrips) {
  Activations narrow(format, 2, 31);
  std::vector<float> x(64);
  EXPECT_THROW(layer_norm(kernels, 2, x.data(), 32, 1e-6f, narrow, nullptr), Error);
}

INSTANTIATE_TEST_SUITE_P(Sets, LayerNorm, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

TEST(LayerNormReference, BackwardIsTheDerivativeOfForward) {
  const KernelSet& reference = reference_kernels(Format::kF32);
  constexpr int64_t kWidth = 32;
  auto x = random_floats(kWidth, 6);
  const auto gradient = random_floats(kWidth, 7);
  Activations xhat(Format::kF32, 1, kWidth);
  float rstd = 0;
  const auto loss = [&] {
    layer_norm(reference, 1, x.data(), kWidth, 1e-6f, xhat, &rstd);
    double total = 0;
    for (int64_t c = 0; c < kWidth; ++c) total += double{xhat.at(0, c)} * gradient[c];
    return total;
  };
  loss();
  std::vector<float> dx(kWidth);
  layer_norm_backward(reference, 1, {gradient.data(), kWidth, &xhat, &rstd, dx.data(), kWidth, nullptr});
  constexpr float kStep = 0x1p-7f;  // truncation h^2 / 6 ~ 1e-5, storage of xhat 1e-7 sqrt(32) / h ~ 1e-4
  for (int64_t c = 0; c < kWidth; ++c) {
    const float before = x[c];
    x[c] = before + kStep;
    const double above = loss();
    x[c] = before - kStep;
    const double below = loss();
    x[c] = before;
    EXPECT_NEAR(dx[c], (above - below) / (2 * kStep), 5e-4);
  }
}

}  // namespace
}  // namespace aha
