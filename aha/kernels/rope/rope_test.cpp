#include "aha/kernels/rope/rope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

constexpr int64_t kImages = 2, kHeads = 3, kTokens = 19, kFirst = 5;

// Sines and cosines of the two halves differ, so that taking one for the other shows.
struct Angles {
  explicit Angles(int64_t width) : cos((kTokens - kFirst) * width), sin(cos.size()) {
    for (size_t i = 0; i < cos.size(); ++i)
      cos[i] = std::cos(0.1f * static_cast<float>(i)), sin[i] = std::sin(0.1f * static_cast<float>(i));
  }
  RopeAngles angles() const { return {cos.data(), sin.data(), kFirst}; }
  std::vector<float> cos, sin;
};

class RopeOn : public ::testing::TestWithParam<const KernelSet*> {};
INSTANTIATE_TEST_SUITE_P(Sets, RopeOn, ::testing::ValuesIn(checks::sets_to_test()), checks::set_name);

TEST(Rope, AQuarterTurnSwapsTheHalvesAndPrefixTokensStay) {
  Heads heads(Format::kF32, 1, 1, 3, 32);
  for (int64_t t = 0; t < 3; ++t)
    for (int64_t i = 0; i < 32; ++i) heads.set(0, 0, t, i, static_cast<float>(100 * t + i));
  const std::vector<float> cos(64, 0.f), sin(64, 1.f);
  rotate_heads(reference_kernels(Format::kF32), 1, {cos.data(), sin.data(), 1}, heads);
  EXPECT_EQ(heads.at(0, 0, 0, 5), 5);
  EXPECT_EQ(heads.at(0, 0, 1, 5), -(100 + 21));
  EXPECT_EQ(heads.at(0, 0, 1, 21), 100 + 5);
}

TEST_P(RopeOn, HeadsMatchTheReference) {
  const Format format = GetParam()->format;
  for (const int64_t width : {32, 64, 96}) {
    const Angles a(width);
    Heads expected = checks::random_heads(format, kImages, kHeads, kTokens, width, 4),
          found = checks::random_heads(format, kImages, kHeads, kTokens, width, 4);
    const auto before = checks::floats_of(expected);
    rotate_heads(reference_kernels(format), kImages, a.angles(), expected);
    rotate_heads(*GetParam(), kImages, a.angles(), found);
    // A sum of two products, each at most as large as its factor of the head.
    const double most = 2 * *std::ranges::max_element(before) * checks::storing_epsilon(format);
    EXPECT_TRUE(checks::all_within(checks::floats_of(found), checks::floats_of(expected), [&](size_t) {
      return most;
    })) << width;
  }
}

TEST_P(RopeOn, TheGradientIsTheTransposedTurn) {
  const Format format = GetParam()->format;
  for (const int64_t width : {32, 64, 96}) {
    const Angles a(width);
    const int64_t D = kHeads * width, R = kImages * kTokens;
    Activations gradient = checks::random_operand(format, R, 3 * D, 5);
    const Activations before = checks::random_operand(format, R, 3 * D, 5);
    rotate_gradient(*GetParam(), a.angles(), {&gradient, D, kImages, kTokens, kHeads, width});
    Heads v = checks::random_heads(Format::kF32, kImages, kHeads, kTokens, width, 6),
          turned = checks::random_heads(Format::kF32, kImages, kHeads, kTokens, width, 6);
    rotate_heads(reference_kernels(Format::kF32), kImages, a.angles(), turned);
    for (int64_t r = 0; r < R; ++r) {
      for (const int64_t c : {int64_t{0}, D - 1, 2 * D, 3 * D - 1})
        EXPECT_EQ(gradient.at(r, c), before.at(r, c)) << "columns of others";
      for (int64_t h = 0; h < kHeads; ++h) {
        double there = 0, back = 0, g = 0, size = 0;  // <gradient, rot(v)> = <rot^T(gradient), v>
        for (int64_t i = 0; i < width; ++i) {
          const double d = before.at(r, D + h * width + i), x = v.at(r / kTokens, h, r % kTokens, i);
          there += d * turned.at(r / kTokens, h, r % kTokens, i);
          back += gradient.at(r, D + h * width + i) * x;
          g += d * d;
          size += x * x;
        }
        EXPECT_NEAR(back, there, 2 * checks::storing_epsilon(format) * std::sqrt(g * size))
            << width << " " << r << " " << h;
      }
    }
  }
}

}  // namespace
}  // namespace aha
