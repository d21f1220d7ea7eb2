#include "aha/kernels/depthwise/depthwise.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

using checks::all_within;
using checks::floats_of;
using checks::random_floats;

constexpr int64_t kTaps = DepthwiseWeights::kTaps;

class Depthwise : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
  const KernelSet& reference = reference_kernels(GetParam()->format);
  Format format = GetParam()->format;
};

struct Images {
  int64_t images, height, width, channels;
  int64_t lines() const { return images * height; }
  int64_t rows() const { return lines() * width; }
};

// Widths around the tiles of either instruction set, heights around the kernel's reach.
const Images kShapes[] = {{1, 1, 1, 32},  {2, 2, 3, 64},   {1, 3, 4, 32},  {1, 4, 7, 32},
                          {2, 7, 8, 32},  {1, 5, 9, 32},   {1, 8, 15, 96}, {1, 4, 16, 32},
                          {1, 9, 17, 32}, {1, 14, 14, 64}, {1, 3, 33, 32}, {1, 3, 56, 32}};

TEST_P(Depthwise, MatchesReferenceFromTheBiasAndFromWhatIsThere) {
  for (const Images& s : kShapes) {
    const int64_t in_stride = s.channels + 5, out_stride = s.channels + 3;
    const auto in = random_floats(s.rows() * in_stride, 1), kernel = random_floats(s.channels * kTaps, 2),
               bias = random_floats(s.channels, 3), start = random_floats(s.rows() * out_stride, 4);
    const auto forward = DepthwiseWeights::forward(kernel.data(), bias.data(), s.channels);
    const auto backward = DepthwiseWeights::backward(kernel.data(), s.channels);
    for (bool add : {false, true}) {
      auto found = start, expected = start;
      Activations operand(format, s.rows(), s.channels), expected_operand(format, s.rows(), s.channels);
      DepthwiseJob job{in.data(),    in_stride,  s.height, s.width, add ? &backward : &forward,
                       found.data(), out_stride, add,      &operand};
      depthwise(kernels, 0, s.lines(), job);
      job.out = expected.data();
      job.operand = &expected_operand;
      depthwise(reference, 0, s.lines(), job);
      // 49 products of standard normal numbers, and the start.
      const double bound = checks::sum_bound(kTaps + 1, std::sqrt(kTaps + 1.0) * 4);
      EXPECT_TRUE(all_within(found, expected, [&](size_t) { return bound; }))
          << s.images << " x " << s.height << " x " << s.width << " x " << s.channels
          << (add ? " added" : "");
      const auto values = floats_of(expected_operand);
      EXPECT_TRUE(all_within(floats_of(operand), values, [&](size_t i) {
        return bound + checks::storing_epsilon(format) * std::abs(values[i]);
      }));
    }
  }
}

TEST_P(Depthwise, AnyCutIntoLinesGivesTheSameBits) {
  const Images s{2, 6, 19, 64};
  const auto in = random_floats(s.rows() * s.channels, 1), kernel = random_floats(s.channels * kTaps, 2);
  const auto weights = DepthwiseWeights::forward(kernel.data(), nullptr, s.channels);
  std::vector<float> whole(s.rows() * s.channels), cut(whole.size());
  DepthwiseJob job{in.data(), s.channels, s.height, s.width, &weights, whole.data(), s.channels};
  depthwise(kernels, 0, s.lines(), job);
  for (int64_t first = 0; first < s.lines(); first += 5) {
    job.out = cut.data() + first * s.width * s.channels;
    depthwise(kernels, first, std::min<int64_t>(5, s.lines() - first), job);
  }
  EXPECT_EQ(cut, whole);
}

TEST_P(Depthwise, TheGradientOfTheKernelMatchesReference) {
  for (const Images& s : kShapes) {
    const int64_t in_stride = s.channels + 5, dout_stride = s.channels + 3;
    const auto in = random_floats(s.rows() * in_stride, 1), dout = random_floats(s.rows() * dout_stride, 2);
    const auto before = random_floats(s.channels * (kTaps + 1), 3);
    auto found = before, expected = before;
    const auto job = [&](std::vector<float>& sums) {
      return DepthwiseWeightGradient{in.data(), dout.data(), in_stride,  dout_stride, s.height,
                                     s.width,   s.channels,  sums.data(), sums.data() + s.channels * kTaps};
    };
    depthwise_weight_gradient(kernels, s.images, job(found));
    depthwise_weight_gradient(reference, s.images, job(expected));
    const double bound = checks::sum_bound(s.rows() + 1, std::sqrt(s.rows() + 1.0) * 4);
    EXPECT_TRUE(all_within(found, expected, [&](size_t) { return bound; }))
        << s.images << " x " << s.height << " x " << s.width << " x " << s.channels;
  }
}

TEST_P(Depthwise, RefusesChannelsThatAreNotWholeStrips) {
  const std::vector<float> kernel(48 * kTaps);
  EXPECT_THROW(DepthwiseWeights::forward(kernel.data(), nullptr, 48), Error);
}

INSTANTIATE_TEST_SUITE_P(Sets, Depthwise, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

TEST(DepthwiseReference, TheCentreTapAloneCopiesTheImageAndACornerTapShiftsIt) {
  const Images s{1, 5, 6, 32};
  const auto in = random_floats(s.rows() * s.channels, 1);
  const auto result = [&](int64_t tap) {
    std::vector<float> kernel(s.channels * kTaps), out(in.size());
    for (int64_t c = 0; c < s.channels; ++c) kernel[c * kTaps + tap] = 1;
    const auto weights = DepthwiseWeights::forward(kernel.data(), nullptr, s.channels);
    depthwise(reference_kernels(Format::kF32), 0, s.lines(),
              {in.data(), s.channels, s.height, s.width, &weights, out.data(), s.channels});
    return out;
  };
  EXPECT_EQ(result(24), in);
  const auto shifted = result(0);  // out(y, x) = in(y - 3, x - 3)
  EXPECT_EQ(shifted[(4 * 6 + 5) * 32], in[(1 * 6 + 2) * 32]);
  EXPECT_EQ(shifted[(2 * 6 + 5) * 32], 0);
}

// <conv(x), g> = <x, conv_back(g)>
TEST(DepthwiseReference, BackwardIsTheTransposeOfForward) {
  const Images s{1, 5, 6, 32};
  const auto x = random_floats(s.rows() * s.channels, 1), g = random_floats(s.rows() * s.channels, 2),
             kernel = random_floats(s.channels * kTaps, 3);
  const auto forward = DepthwiseWeights::forward(kernel.data(), nullptr, s.channels);
  const auto backward = DepthwiseWeights::backward(kernel.data(), s.channels);
  std::vector<float> y(x.size()), dx(x.size());
  const KernelSet& reference = reference_kernels(Format::kF32);
  depthwise(reference, 0, s.lines(),
            {x.data(), s.channels, s.height, s.width, &forward, y.data(), s.channels});
  depthwise(reference, 0, s.lines(),
            {g.data(), s.channels, s.height, s.width, &backward, dx.data(), s.channels});
  double left = 0, right = 0;
  for (size_t i = 0; i < x.size(); ++i) left += double{y[i]} * g[i], right += double{x[i]} * dx[i];
  EXPECT_NEAR(left, right,
              checks::sum_bound(static_cast<int64_t>(x.size()), checks::norm(y) * checks::norm(g)));
}

// The output is linear in the kernel: <conv of kernel(x), g> = <kernel, gradient of (x, g)>, bias and its gradient too.
TEST(DepthwiseReference, TheGradientOfTheKernelIsTheOutputsTranspose) {
  const Images s{2, 5, 6, 32};
  const auto x = random_floats(s.rows() * s.channels, 1), g = random_floats(s.rows() * s.channels, 2),
             kernel = random_floats(s.channels * kTaps, 3), bias = random_floats(s.channels, 4);
  const auto weights = DepthwiseWeights::forward(kernel.data(), bias.data(), s.channels);
  const KernelSet& reference = reference_kernels(Format::kF32);
  std::vector<float> y(x.size()), taps(s.channels * kTaps), d_bias(s.channels);
  depthwise(reference, 0, s.lines(), {x.data(), s.channels, s.height, s.width, &weights, y.data(), s.channels});
  depthwise_weight_gradient(reference, s.images,
                            {x.data(), g.data(), s.channels, s.channels, s.height, s.width, s.channels, taps.data(),
                             d_bias.data()});
  double left = 0, right = 0;
  for (size_t i = 0; i < y.size(); ++i) left += double{y[i]} * g[i];
  for (int64_t c = 0; c < s.channels; ++c) {
    right += double{bias[c]} * d_bias[c];
    for (int64_t tap = 0; tap < kTaps; ++tap) right += double{weights.at(c, tap)} * taps[tap * kStrip + c];
  }
  EXPECT_NEAR(left, right, checks::sum_bound(static_cast<int64_t>(x.size()), checks::norm(y) * checks::norm(g)));
}

}  // namespace
}  // namespace aha
