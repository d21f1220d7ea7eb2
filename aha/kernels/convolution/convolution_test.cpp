#include "aha/kernels/convolution/convolution.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

using checks::all_within;
using checks::random_floats;

class Convolution : public ::testing::TestWithParam<const KernelSet*> {
 protected:
  const KernelSet& kernels = *GetParam();
};

struct ConvolutionShape {
  int64_t lines, width, channels, outputs, side, stride;
  int64_t in_width() const { return (width - 1) * stride + side; }
  int64_t in_floats() const { return ((lines - 1) * stride + side) * in_width() * channels; }
  int64_t out_floats() const { return lines * width * outputs; }
};

// Widths around the tiles and outputs around the panels of either instruction set.
const ConvolutionShape kConvolutionShapes[] = {{1, 1, 1, 1, 1, 1},    {2, 3, 5, 16, 3, 1},   {3, 6, 4, 17, 3, 1},  {2, 7, 32, 32, 3, 1},  {2, 13, 8, 33, 3, 2},
                                               {1, 14, 16, 48, 1, 1}, {2, 15, 16, 40, 3, 1}, {1, 28, 3, 16, 3, 1}, {1, 29, 16, 15, 3, 2}, {2, 57, 7, 64, 1, 1}};

TEST_P(Convolution, MatchesReference) {
  for (const auto& s : kConvolutionShapes)
    for (const bool with_bias : {false, true}) {
      const int64_t depth = s.side * s.side * s.channels;
      const auto in = random_floats(s.in_floats(), 1), kernel = random_floats(s.outputs * depth, 2), bias = random_floats(s.outputs, 3);
      const ConvolutionWeights weights(kernel.data(), with_bias ? bias.data() : nullptr, s.outputs, s.channels, s.side);
      std::vector<float> found(s.out_floats() + 1, 77), expected(s.out_floats() + 1, 77);
      ConvolutionJob job{&weights, in.data(), s.in_width(), s.stride, found.data(), s.width};
      convolution(kernels, s.lines, job);
      job.out = expected.data();
      convolution(reference_kernels(kernels.format), s.lines, job);
      const double bound = checks::sum_bound(depth + 1, std::sqrt(depth + 1.0) * 4);
      EXPECT_TRUE(all_within(found, expected, [&](size_t) { return bound; }))
          << s.lines << " x " << s.width << ", " << s.channels << " to " << s.outputs << ", side " << s.side << ", stride " << s.stride;
      EXPECT_EQ(found.back(), 77) << "written behind the last output";
    }
}

// The contract itself, once: one pixel by hand.
TEST_P(Convolution, WeighsTheNeighbourhood) {
  const float in[3 * 3 * 2] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};  // 3 x 3 pixels of 2 channels
  float kernel[2 * 9] = {};
  kernel[0 * 9 + 0 * 3 + 1] = 10;  // channel 0, top middle: 3
  kernel[1 * 9 + 2 * 3 + 2] = 1;   // channel 1, bottom right: 18
  const float bias = 0.5f;
  const ConvolutionWeights weights(kernel, &bias, 1, 2, 3);
  float out = 0;
  convolution(kernels, 1, {&weights, in, 3, 1, &out, 1});
  EXPECT_FLOAT_EQ(out, 10 * 3 + 18 + 0.5f);
}

TEST_P(Convolution, APixelsValueDoesNotDependOnItsTile) {
  constexpr int64_t kWidth = 31, kChannels = 24, kOutputs = 40;
  const auto in = random_floats(3 * (kWidth + 2) * kChannels, 1), kernel = random_floats(kOutputs * 9 * kChannels, 2);
  const ConvolutionWeights weights(kernel.data(), nullptr, kOutputs, kChannels, 3);
  std::vector<float> whole(kWidth * kOutputs), one(kOutputs);
  convolution(kernels, 1, {&weights, in.data(), kWidth + 2, 1, whole.data(), kWidth});
  for (int64_t x = 0; x < kWidth; ++x) {
    convolution(kernels, 1, {&weights, in.data() + x * kChannels, kWidth + 2, 1, one.data(), 1});
    EXPECT_TRUE(std::equal(one.begin(), one.end(), whole.begin() + x * kOutputs)) << "pixel " << x;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, Convolution, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

TEST(ConvolutionWeights, LinesThatAreTooShortAreRefused) {
  const float kernel[9] = {};
  const ConvolutionWeights weights(kernel, nullptr, 1, 1, 3);
  float out[4];
  EXPECT_THROW(convolution(reference_kernels(Format::kF32), 1, {&weights, kernel, 4, 1, out, 3}), Error);
  EXPECT_THROW(ConvolutionWeights(kernel, nullptr, 1, 0, 3), Error);
}

}  // namespace
}  // namespace aha
