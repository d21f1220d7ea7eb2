#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/metrics/catalog.h"

namespace aha {
namespace {

constexpr double kGolden = 1e-5;  // the published vectors are rounded to 6 digits

TEST(Curve, TenPointRuleReproducesAPublishedRow) {
  // ViT-B/16, predicted class, Grad-CAM: plotted curves and tabulated areas, the latter rounded to 4 digits.
  const std::vector<double> top = {.8427, .5607, .4485, .3716, .3137, .2654, .2136, .1543, .0898, .0380};
  const std::vector<double> bottom = {.8427, .8192, .7834, .7262, .6466, .5474, .4414, .3302, .2164, .0993};
  EXPECT_NEAR(deletion_area(top, AreaRule::kAuc10), 0.2858, 1e-4);
  EXPECT_NEAR(insertion_area(bottom, AreaRule::kAuc10), 0.4982, 1e-4);
}

TEST(Curve, PositiveAreaIsTheSameRuleOnHits) {
  const std::vector<double> hits = {1, .8, .7, .55, .4, .3, .2, .15, .1, .05};
  EXPECT_NEAR(auc10(hits), 0.3725, 1e-12);
  EXPECT_NEAR(trapezoid(std::span(hits).subspan(1)), 0.353125, 1e-12);  // the 9-point rule
}

TEST(Curve, RefusesTheWrongNumberOfPoints) {
  EXPECT_THROW(auc10(std::vector<double>(11)), Error);
  EXPECT_THROW(trapezoid(std::vector<double>(1)), Error);
  EXPECT_THROW(deletion_area(std::vector<double>(1), AreaRule::kMeanK), Error);
  EXPECT_THROW(area_rule_from_text("auc11"), Error);
}

TEST(Curve, RemovedPixelsAreFlooredExactly) {
  std::vector<int64_t> found;
  for (int i = 1; i < 10; ++i) found.push_back(removed_pixels(i, 10, 224 * 224));
  EXPECT_EQ(found, (std::vector<int64_t>{5017, 10035, 15052, 20070, 25088, 30105, 35123, 40140, 45158}));
}

// f(I) = sum of w I over the first channel, w = (1..16) / 136, as the probability of class 0.
class ToyTarget : public Classifier {
 public:
  ToyTarget() {
    info_.classes = 2;
    info_.input.size = 4;
  }
  Tensor logits(const Tensor& pixels, Taps*) override {
    evaluations += pixels.size(0);
    const auto w = torch::arange(1, 17, torch::kFloat64) / 136;
    const auto f = (pixels.select(1, 0).flatten(1).to(torch::kFloat64) * w).sum(1).clamp(0, 1);
    return torch::stack({f.log(), (1 - f).log()}, 1);
  }
  int64_t evaluations = 0;
};

const Tensor kToyMap =
    torch::tensor({1., 5., 2., 8., 9., 4., 16., 3., 7., 12., 6., 13., 10., 11., 15., 14.}).view({1, 4, 4});

SweepCurves toy_sweep(const SweepOptions& options, ToyTarget& target) {
  const Context context;
  const auto pixels = torch::ones({1, 3, 4, 4}), reference = torch::zeros({1, 3, 4, 4});
  const SweepEnds ends{logits_of(target, pixels, context), logits_of(target, reference, context)};
  target.evaluations = 0;
  return sweep(target, pixels, reference, hard_order(kToyMap).order, torch::zeros({1}, torch::kInt64), ends,
               options, context)[0];
}

TEST(Sweep, ReproducesTheToyCurves) {
  ToyTarget target;
  const auto curves = toy_sweep({10, AreaRule::kAuc10}, target);
  const std::vector<double> top = {1,       .948529, .720588, .632353, .455882,
                                   .323529, .294118, .147059, .132353, .029412};
  const std::vector<double> bottom = {1,       .992647, .911765, .867647, .772059,
                                      .676471, .639706, .441176, .367647, .161765};
  ASSERT_EQ(curves.top.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(curves.top[i], top[i], kGolden);
    EXPECT_NEAR(curves.bottom[i], bottom[i], kGolden);
    EXPECT_EQ(curves.top_hits[i], top[i] > 0.5 ? 1 : 0);
  }
  EXPECT_NEAR(value_of_curves(metric_record("deletion"), curves, AreaRule::kAuc10), 0.416912, kGolden);
  EXPECT_NEAR(value_of_curves(metric_record("insertion"), curves, AreaRule::kAuc10), 0.625, kGolden);
  EXPECT_NEAR(value_of_curves(metric_record("ins-del"), curves, AreaRule::kAuc10), 0.625 - 0.416912, kGolden);
  EXPECT_EQ(target.evaluations, 18);
}

struct AreaCase {
  int steps;
  AreaRule rule;
  double deletion, insertion;
};

TEST(Sweep, OtherRulesReproduceTheToyAreas) {
  for (const AreaCase& r : {AreaCase{16, AreaRule::kTrapezoid, 0.391544, 0.608456},
                            AreaCase{4, AreaRule::kTrapezoid, 0.397059, 0.602941},
                            AreaCase{16, AreaRule::kMeanK, 0.360294, 0.639706}}) {
    ToyTarget target;
    const auto curves = toy_sweep({r.steps, r.rule}, target);
    EXPECT_NEAR(value_of_curves(metric_record("deletion"), curves, r.rule), r.deletion, kGolden);
    EXPECT_NEAR(value_of_curves(metric_record("insertion"), curves, r.rule), r.insertion, kGolden);
  }
}

TEST(Sweep, DoesNotDependOnTheBatchSize) {
  ToyTarget target;
  const auto pixels = torch::rand({3, 3, 4, 4}), reference = torch::rand({3, 3, 4, 4}) * 0.1;
  const auto order = hard_order(torch::rand({3, 4, 4})).order;
  const auto classes = torch::tensor({0, 1, 0}, torch::kInt64);
  Context one, all;
  one.batch_size = 1;
  all.batch_size = 64;
  const SweepEnds ends{logits_of(target, pixels, one), logits_of(target, reference, all)};
  const auto a = sweep(target, pixels, reference, order, classes, ends, {}, one),
             b = sweep(target, pixels, reference, order, classes, ends, {}, all);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a[i].top, b[i].top);
    EXPECT_EQ(a[i].bottom, b[i].bottom);
    EXPECT_EQ(a[i].top_hits, b[i].top_hits);
    EXPECT_EQ(a[i].bottom_hits, b[i].bottom_hits);
  }
}

TEST(Catalog, ADifferenceBringsItsParts) {
  std::vector<std::string> names;
  for (const auto& metric : metrics_from_names({"neg-pos"})) names.push_back(metric.name);
  EXPECT_EQ(names, (std::vector<std::string>{"positive", "negative", "neg-pos"}));
  EXPECT_THROW(metrics_from_names({"delection"}), Error);
}

}  // namespace
}  // namespace aha
