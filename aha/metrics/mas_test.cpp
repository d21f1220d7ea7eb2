#include "aha/metrics/mas.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/metrics/curve.h"

namespace aha {
namespace {

void expect_curve(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

TEST(Mas, InsertionReproducesTheWorkedExample) {
  const MasInput input{{.05, .45, .40, .80, .85, .90}, {8, 4, 2, 1, 1}, .90, .05};
  const auto curve = mas_curve(MasTest::kInsertion, input);
  expect_curve(curve.density, {0, .5, .75, .875, .9375, 1});
  expect_curve(curve.response, {0, .470588, .470588, .882353, .941176, 1});
  expect_curve(curve.penalty, {0, .029412, .279412, .007353, .003676, 0});
  expect_curve(curve.aligned, {0, .441176, .191176, .875, .9375, 1});
  EXPECT_NEAR(curve.rise, 0.652941, 1e-5);
  EXPECT_NEAR(curve.mas, 0.588971, 1e-5);
  EXPECT_NEAR(trapezoid(input.probabilities), 0.595, 1e-12);
}

TEST(Mas, DeletionReproducesTheWorkedExample) {
  const MasInput input{{.90, .50, .55, .20, .12, .10}, {8, 4, 2, 1, 1}, .90, .10};
  const auto curve = mas_curve(MasTest::kDeletion, input);
  expect_curve(curve.density, {1, .5, .25, .125, .0625, 0});
  expect_curve(curve.response, {1, .5, .5, .125, .025, 0});
  expect_curve(curve.penalty, {0, 0, .25, 0, .0375, 0});
  expect_curve(curve.aligned, {1, .5, .75, .125, .0625, 0});
  EXPECT_NEAR(curve.rise, 0.33, 1e-5);
  EXPECT_NEAR(curve.mas, 0.3875, 1e-5);
  EXPECT_NEAR(trapezoid(input.probabilities), 0.374, 1e-12);
}

TEST(Mas, WithoutARangeTheAreaIsAHalf) {
  for (const auto test : {MasTest::kInsertion, MasTest::kDeletion}) {
    const auto curve = mas_curve(test, {{.3, .3, .3, .3, .3}, {1, 1, 1, 1}, .3, .3});
    EXPECT_NEAR(curve.rise, 0.5, 1e-12);
    EXPECT_NEAR(curve.mas, 0.5, 1e-12);
  }
  EXPECT_THROW(mas_curve(MasTest::kInsertion, {{.1, .2}, {0}, .2, .1}), Error);
  EXPECT_THROW(mas_curve(MasTest::kInsertion, {{.1}, {1}, .2, .1}), Error);
}

// The probability of class 0 is the mean of the red channel.
class RedTarget : public Classifier {
 public:
  RedTarget() {
    info_.classes = 2;
    info_.input.size = 4;
  }
  Tensor logits(const Tensor& pixels, Taps*) override {
    evaluations += pixels.size(0);
    const auto f = pixels.select(1, 0).mean({1, 2}).clamp(1e-6, 1 - 1e-6);
    return torch::stack({f.log(), (1 - f).log()}, 1);
  }
  int64_t evaluations = 0;
};

TEST(Mas, AsksTheTargetBetweenTheKnownEnds) {
  RedTarget target;
  Tensor pixels = torch::zeros({3, 4, 4});
  pixels[0] = torch::arange(16, torch::kFloat32).view({4, 4}) / 16;  // mean 0.46875
  const MasImage image{pixels, torch::zeros({3, 4, 4}), 0, 0.46875, 0};
  const auto inserted = mas_input(target, MasTest::kInsertion, image, pixels[0], Context()),
             deleted = mas_input(target, MasTest::kDeletion, image, pixels[0], Context());
  EXPECT_EQ(target.evaluations, 6);  // three between the ends of four steps, twice
  expect_curve(inserted.mass, {54 / 16., 38 / 16., 22 / 16., 6 / 16.});
  expect_curve(inserted.probabilities, {0, 54 / 256., 92 / 256., 114 / 256., 120 / 256.});
  expect_curve(deleted.probabilities, {120 / 256., 66 / 256., 28 / 256., 6 / 256., 0});
  // The map is the response itself: nothing to punish.
  const auto curve = mas_curve(MasTest::kInsertion, inserted);
  EXPECT_NEAR(curve.mas, curve.rise, 1e-5);
}

}  // namespace
}  // namespace aha
