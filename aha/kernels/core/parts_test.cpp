// What a kernel computes of a part of its result has the bits of the whole: where one image is split among
// threads, nobody can tell how.
#include <gtest/gtest.h>

#include <span>

#include "aha/kernels/attention/attention.h"
#include "aha/kernels/sets/sets_under_test.h"
#include "aha/kernels/swiglu/swiglu.h"

namespace aha {
namespace {

using checks::floats_of;
using checks::random_floats;
using checks::random_heads;
using checks::random_operand;

class Parts : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
  Format format = GetParam()->format;
};

TEST_P(Parts, OfAGemm) {
  constexpr int64_t kRows = 77, kInputs = 800, kOutputs = 160;  // more than one pass of the tile kernels
  const Activations x = random_operand(format, kRows, kInputs, 1);
  const auto values = random_floats(kOutputs * kInputs, 2, 0.1f), bias = random_floats(kOutputs, 3);
  const PackedWeights weights = PackedWeights::forward(format, values.data(), kOutputs, kInputs);
  const int64_t middle = format == Format::kF32 ? 31 : 32;
  const GemmPart whole[] = {{0, kRows, 0, kOutputs}},
                 by_rows[] = {{middle, kRows, 0, kOutputs}, {0, middle, 0, kOutputs}},
                 by_columns[] = {{0, kRows, 96, kOutputs}, {0, kRows, 0, 32}, {0, kRows, 32, 96}},
                 by_both[] = {{middle, kRows, 64, kOutputs},
                              {0, middle, 0, 64},
                              {0, middle, 64, kOutputs},
                              {middle, kRows, 0, 64}};
  const auto run = [&](std::span<const GemmPart> parts) {
    const auto each = [&](const Epilogue& epilogue) {
      for (const GemmPart& part : parts) kernels.gemm(part, x, weights, epilogue);
    };
    std::vector<float> rows(kRows * kOutputs, 0.5f);
    each(AddToRows{rows.data(), kOutputs, bias.data()});
    Activations hidden(format, kRows, kOutputs);
    ActivationDerivative derivative(format, kRows, kOutputs);
    each(GeluToActivations{&hidden, bias.data(), &derivative});
    Heads heads(format, 1, 5, kRows, 32);
    each(StoreHeads{{&heads, nullptr, nullptr}, bias.data()});
    return std::vector{rows, floats_of(hidden), floats_of(derivative), floats_of(heads)};
  };
  const auto expected = run(whole);
  EXPECT_EQ(run(by_rows), expected);
  EXPECT_EQ(run(by_columns), expected);
  EXPECT_EQ(run(by_both), expected);
}

TEST_P(Parts, OfAttention) {
  constexpr int64_t kHeads = 3, kTokens = 70, kWidth = 32;
  const Heads q = random_heads(format, 2, kHeads, kTokens, kWidth, 1, 0.3f),
              k = random_heads(format, 2, kHeads, kTokens, kWidth, 2),
              v = random_heads(format, 2, kHeads, kTokens, kWidth, 3);
  const AttentionInput input{&q, &k, &v, 2};
  const auto run = [&](const std::vector<int64_t>& cuts) {
    Activations out(format, 2 * kTokens, kHeads * kWidth);
    std::vector<float> log_sums(2 * kHeads * kTokens);
    for (int64_t image = 0; image < 2; ++image)
      for (int64_t head = kHeads; head-- > 0;)
        for (size_t i = 1; i < cuts.size(); ++i)
          kernels.attention_forward(input, {image, head, cuts[i - 1], cuts[i]}, out, log_sums.data());
    return std::pair(floats_of(out), log_sums);
  };
  const auto whole = run({0, kTokens});
  EXPECT_EQ(run({0, 32, kTokens}), whole);
  EXPECT_EQ(run({0, 64, kTokens}), whole);
}

TEST_P(Parts, OfRows) {
  constexpr int64_t kRows = 45, kWidth = 96;
  const auto x = random_floats(kRows * kWidth, 1), gradient = random_floats(kRows * kWidth, 2);
  const Activations gates = random_operand(format, kRows, 2 * kWidth, 3),
                    dout = random_operand(format, kRows, kWidth, 4);
  const auto run = [&](const std::vector<int64_t>& cuts) {
    Activations xhat(format, kRows, kWidth), operand(format, kRows, kWidth), hidden(format, kRows, kWidth),
        dgates(format, kRows, 2 * kWidth);
    std::vector<float> rstd(kRows), dx(kRows * kWidth, 0.25f);
    for (size_t i = cuts.size(); i-- > 1;) {
      const int64_t first = cuts[i - 1], end = cuts[i];
      kernels.layer_norm(first, end, x.data(), kWidth, 1e-6f, xhat, rstd.data());
      kernels.layer_norm_backward(first, end,
                                  {gradient.data(), kWidth, &xhat, rstd.data(), dx.data(), kWidth, &operand});
      kernels.swiglu(first, end, gates, hidden);
      kernels.swiglu_backward(first, end, gates, dout, dgates);
    }
    return std::vector{floats_of(xhat), rstd, dx, floats_of(operand), floats_of(hidden), floats_of(dgates)};
  };
  EXPECT_EQ(run({0, 1, 33, kRows}), run({0, kRows}));
}

TEST_P(Parts, OfRotatedHeads) {
  constexpr int64_t kImages = 2, kHeads = 3, kTokens = 9, kWidth = 64, kFirst = 2;
  const auto cos = random_floats((kTokens - kFirst) * kWidth, 1),
             sin = random_floats((kTokens - kFirst) * kWidth, 2);
  const RopeAngles rope{cos.data(), sin.data(), kFirst};
  const auto run = [&](int64_t head, int64_t row) {
    Heads heads = random_heads(format, kImages, kHeads, kTokens, kWidth, 3);
    kernels.rotate_heads(head, kImages * kHeads, rope, heads);
    kernels.rotate_heads(0, head, rope, heads);
    Activations gradient = random_operand(format, kImages * kTokens, kHeads * kWidth, 4);
    const RopeGradient job{&gradient, 0, kImages, kTokens, kHeads, kWidth};
    kernels.rotate_gradient(row, kImages * kTokens, rope, job);
    kernels.rotate_gradient(0, row, rope, job);
    return std::pair(floats_of(heads), floats_of(gradient));
  };
  EXPECT_EQ(run(4, 11), run(0, 0));
}

TEST_P(Parts, OfADepthwiseConvolution) {
  constexpr int64_t kHeight = 7, kWidth = 9, kChannels = 64, kLines = 9;  // of two images
  const auto in = random_floats(2 * kHeight * kWidth * kChannels, 1),
             taps = random_floats(kChannels * DepthwiseWeights::kTaps, 2), bias = random_floats(kChannels, 3);
  const DepthwiseWeights weights = DepthwiseWeights::forward(taps.data(), bias.data(), kChannels);
  const auto run = [&](const std::vector<int64_t>& cuts) {
    std::vector<float> out(kLines * kWidth * kChannels);
    Activations operand(format, kLines * kWidth, kChannels);
    for (size_t i = cuts.size(); i-- > 1;)
      kernels.depthwise(
          3, kLines, cuts[i - 1], cuts[i],
          {in.data(), kChannels, kHeight, kWidth, &weights, out.data(), kChannels, false, &operand});
    return std::pair(out, floats_of(operand));
  };
  EXPECT_EQ(run({0, 4, 12, 2 * kLines}), run({0, 2 * kLines}));
}

TEST_P(Parts, OfATransposedPack) {
  constexpr int64_t kOutputs = 96, kInputs = 160;
  const auto values = random_floats(kOutputs * kInputs, 1);
  const PackedWeights from = PackedWeights::forward(format, values.data(), kOutputs, kInputs);
  PackedWeights to(format, kInputs, kOutputs);
  kernels.transpose_weights(from, to, 3, 5);
  kernels.transpose_weights(from, to, 0, 3);
  EXPECT_EQ(to.unpacked(), PackedWeights::backward(format, values.data(), kOutputs, kInputs).unpacked());
}

INSTANTIATE_TEST_SUITE_P(Sets, Parts, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

}  // namespace
}  // namespace aha
