#include "aha/app/scrub.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/tensor/tensor.h"
#include "aha/testing/toy_classifiers.h"

namespace aha {
namespace {

struct Scene {
  checks::LinearToy target{8};
  Tensor pixels = torch::rand({1, 3, 8, 8});
  Tensor map = target.importance(pixels)[0];  // (8, 8)
  ScrubImage image{pixels, 0, "black"};
  Context context;
};

TEST(Scrub, TheEndsAreTheImageAndItsReference) {
  Scene s;
  const auto at = [&](ScrubMode mode, int64_t k) {
    return scrub(s.target, s.image, s.map, mode, k, s.context).probability;
  };
  const double whole = torch::softmax(s.target.logits(s.pixels), 1)[0][0].item<double>();
  const double black = torch::softmax(s.target.logits(torch::zeros_like(s.pixels)), 1)[0][0].item<double>();
  EXPECT_NEAR(at(ScrubMode::kDelete, 0), whole, 1e-6);
  EXPECT_NEAR(at(ScrubMode::kDelete, 64), black, 1e-6);
  EXPECT_NEAR(at(ScrubMode::kInsert, 0), black, 1e-6);
  EXPECT_NEAR(at(ScrubMode::kInsert, 64), whole, 1e-6);
  EXPECT_LT(at(ScrubMode::kDelete, 10), whole);  // the most important go first
}

TEST(Scrub, ACurvePointIsTheAnswerToItsQuestion) {
  Scene s;
  const ScrubCurve curve = scrub_curve(s.target, s.image, s.map, 7, s.context);
  ASSERT_EQ(curve.k.size(), 8u);
  for (size_t i = 0; i < curve.k.size(); ++i) {
    EXPECT_EQ(curve.k[i], static_cast<int64_t>(i) * 64 / 7);
    EXPECT_NEAR(curve.deletion[i],
                scrub(s.target, s.image, s.map, ScrubMode::kDelete, curve.k[i], s.context).probability, 1e-6);
  }
  EXPECT_NEAR(curve.insertion[0], curve.deletion[7], 1e-6);
  EXPECT_NEAR(curve.insertion[7], curve.deletion[0], 1e-6);
}

TEST(Scrub, AMaskHidesWhatItNames) {
  Scene s;
  const Tensor keep = (s.map < s.map.median()).to(torch::kFloat32);
  const int64_t hidden = 64 - keep.sum().item<int64_t>();
  EXPECT_NEAR(scrub(s.target, s.image, keep, s.context).probability,
              scrub(s.target, s.image, s.map, ScrubMode::kDelete, hidden, s.context).probability, 1e-6);
}

TEST(Scrub, RefusesWhatDoesNotFit) {
  Scene s;
  EXPECT_THROW(scrub(s.target, s.image, s.map, ScrubMode::kDelete, 65, s.context), Error);
  EXPECT_THROW(scrub(s.target, s.image, torch::zeros({4, 4}), ScrubMode::kDelete, 1, s.context), Error);
  EXPECT_THROW(scrub(s.target, s.image, s.map / 0 * 0, ScrubMode::kDelete, 1, s.context), Error);
  EXPECT_THROW(scrub_curve(s.target, s.image, s.map, 1, s.context), Error);
  EXPECT_THROW(scrub_mode_from_text("burn"), Error);
  EXPECT_THROW(scrub(s.target, {s.pixels, 2, "black"}, s.map, ScrubMode::kDelete, 1, s.context), Error);
  EXPECT_THROW(scrub(s.target, {s.pixels, 0, "pink"}, s.map, ScrubMode::kDelete, 1, s.context), Error);
}

}  // namespace
}  // namespace aha
