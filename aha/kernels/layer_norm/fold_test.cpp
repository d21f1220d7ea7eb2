#include "aha/kernels/layer_norm/fold.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

using checks::random_floats;

TEST(Fold, FoldedWeightsGiveWhatTheLayersGaveOneByOne) {
  const int64_t outputs = 7, inputs = 33;
  const auto weights = random_floats(outputs * inputs, 1), bias = random_floats(outputs, 2),
             gamma = random_floats(inputs, 3), beta = random_floats(inputs, 4),
             xhat = random_floats(inputs, 5);
  auto folded = weights, folded_bias = bias;
  fold_layer_norm(folded, folded_bias, gamma, beta);
  scale_outputs(folded, folded_bias, 2, 3, 0.125f);
  for (int64_t n = 0; n < outputs; ++n) {
    double expected = bias[n], found = folded_bias[n], size = 0;
    for (int64_t k = 0; k < inputs; ++k) {
      expected += weights[n * inputs + k] * (double{gamma[k]} * xhat[k] + beta[k]);
      found += double{folded[n * inputs + k]} * xhat[k];
      size += std::abs(weights[n * inputs + k] * (double{gamma[k]} * xhat[k])) +
              std::abs(weights[n * inputs + k] * double{beta[k]});
    }
    const double factor = n >= 2 && n < 5 ? 0.125 : 1;
    EXPECT_NEAR(found, factor * expected, 2 * checks::kF32Epsilon * (size + std::abs(bias[n])));
  }
}

TEST(Fold, RefusesSizesThatDoNotFit) {
  std::vector<float> weights(12), bias(5), gamma(3), beta(3);
  EXPECT_THROW(fold_layer_norm(weights, bias, gamma, beta), Error);
  bias.resize(3);
  EXPECT_THROW(fold_layer_norm(weights, bias, gamma, beta), Error);
  EXPECT_THROW(scale_outputs(weights, bias, 2, 2, 1.0f), Error);
}

TEST(Fold, ABiasIsPaddedWithZeros) {
  const std::vector<float> bias = {1, 2, 3};
  const AlignedBuffer<float> padded = padded_bias(bias);
  ASSERT_EQ(padded.size(), 32);
  EXPECT_EQ(padded[2], 3);
  for (int64_t i = 3; i < 32; ++i) EXPECT_EQ(padded[i], 0);
}

}  // namespace
}  // namespace aha
