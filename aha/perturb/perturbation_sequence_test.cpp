#include "aha/perturb/perturbation_sequence.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"

namespace aha {
namespace {

const std::vector<int64_t> kTenths = {0, 1, 3, 4, 6, 8, 9, 11, 12, 14};  // of 16 pixels, rounded down

// A toy with a known answer: I = 1, I0 = 0, f(I) = sum w I with w = (1..16) / 136.
TEST(Sequence, RemovingTopAndBottomGivesTheCurvesKnownOnPaper) {
  const Tensor order =
      torch::tensor({6, 14, 15, 11, 9, 13, 12, 4, 3, 8, 10, 1, 5, 7, 2, 0}, torch::kInt64).view({1, 16});
  const Tensor pixels = torch::ones({1, 3, 4, 4}, torch::kFloat64), reference = torch::zeros_like(pixels);
  const Tensor weight = torch::arange(1, 17, torch::kFloat64).view({4, 4}) / 136;
  const auto curve = [&](Removal removal) {
    const HardSequence sequence(pixels, reference, order, kTenths, removal);
    const Tensor f = (sequence.images(0, sequence.steps()).select(2, 0) * weight).sum({2, 3})[0].contiguous();
    return std::vector<double>(f.data_ptr<double>(), f.data_ptr<double>() + f.numel());
  };
  const std::vector<double> top = {1,       .948529, .720588, .632353, .455882,
                                   .323529, .294118, .147059, .132353, .029412};
  const std::vector<double> bottom = {1,       .992647, .911765, .867647, .772059,
                                      .676471, .639706, .441176, .367647, .161765};
  const auto found_top = curve(Removal::kTop), found_bottom = curve(Removal::kBottom);
  for (size_t s = 0; s < 10; ++s) {
    EXPECT_NEAR(found_top[s], top[s], 5e-7);
    EXPECT_NEAR(found_bottom[s], bottom[s], 5e-7);
  }
}

TEST(Sequence, HardImagesHoldThePixelOrTheReferenceExactly) {
  torch::manual_seed(1);
  const Tensor pixels = torch::rand({2, 3, 5, 5}), reference = torch::rand({2, 3, 5, 5});
  const Tensor order = torch::rand({2, 25}).argsort(/*stable=*/true, 1);
  const HardSequence sequence(pixels, reference, order, {0, 7, 25}, Removal::kTop);
  const Tensor images = sequence.images(0, 3);
  EXPECT_TRUE(torch::equal(images.select(1, 0), pixels));
  EXPECT_TRUE(torch::equal(images.select(1, 2), reference));
  EXPECT_EQ((images.select(1, 1) != pixels).any(1).sum().item<int64_t>(), 2 * 7);
  EXPECT_TRUE(torch::equal(sequence.images(1, 1), images.narrow(1, 1, 1)));
}

TEST(Sequence, RefusesWhatDoesNotFit) {
  const Tensor pixels = torch::rand({1, 3, 4, 4}), order = torch::arange(16).view({1, 16});
  EXPECT_THROW(HardSequence(pixels, pixels, order.narrow(1, 0, 9), {1}, Removal::kTop), Error);
  EXPECT_THROW(HardSequence(pixels, pixels, order, {17}, Removal::kTop).images(0, 1), Error);
  EXPECT_THROW(HardSequence(pixels, pixels, order, {1}, Removal::kTop).images(0, 2), Error);
  EXPECT_THROW(HardSequence(pixels, torch::rand({1, 3, 4, 5}), order, {1}, Removal::kTop), Error);
}

}  // namespace
}  // namespace aha
