// The formulas of the methods on hand-made tensors, and the methods themselves on a transformer whose every
// figure is known (float64 figures, rounded to 6 digits).
#include <gtest/gtest.h>

#include "aha/attribution/attention_maps.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/cam_maps.h"
#include "aha/methods/catalog.h"
#include "aha/methods/patch_maps.h"
#include "aha/methods/path_integral.h"
#include "aha/methods/rise.h"
#include "aha/metrics/catalog.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

constexpr double kGolden = 1e-5;

void expect_values(const Tensor& found, const std::vector<double>& expected, double tolerance = kGolden) {
  const auto flat = found.to(torch::kFloat64).flatten();
  ASSERT_EQ(flat.numel(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(flat[static_cast<int64_t>(i)].item<double>(), expected[i], tolerance) << "at " << i;
}

Tensor doubles(std::vector<double> values, std::vector<int64_t> shape) {
  return torch::tensor(values, torch::kFloat64).view(shape);
}

TEST(GradCam, WeighsChannelsByTheirMeanGradient) {
  const auto a = doubles({1, 2, 3, 4, 0, 1, -1, 2}, {1, 2, 2, 2}),
             q = doubles({.1, .2, .3, .4, -.5, .5, 1, 0}, {1, 2, 2, 2});
  const auto raw = gradcam_raw(a, q);
  expect_values(raw, {0.25, 0.75, 0.5, 1.5});
  expect_values(cam_scaled(raw), {0, 0.4, 0.2, 1});
  expect_values(cam_finished(raw, 4, 4),
                {0, .1, .3, .4, .05, .175, .425, .55, .15, .325, .675, .85, .2, .4, .8, 1});
}

// The features and gradients of the worked example.
struct CamExample {
  Tensor a = doubles({1, 2, 3, 4, 0, 1, -1, 2}, {1, 2, 2, 2}),
         q = doubles({.1, .2, .3, .4, -.5, .5, 1, 0}, {1, 2, 2, 2});
};

TEST(CamFamily, ReproducesTheWorkedExample) {
  const auto [a, q] = CamExample();
  expect_values(hirescam_raw(a, q), {0.1, 0.9, -0.1, 1.6});
  expect_values(cam_scaled(hirescam_raw(a, q)), {0.0625, 0.5625, 0, 1});
  expect_values(gradcam_plus_alpha(a, q), {0.333322, 0.249998, 0.2, 0.166666, 0.999996, 0.333333, 0.25, 0});
  expect_values(gradcam_plus_raw(a, q), {0.209998, 0.836663, 0.213329, 1.673326});
  expect_values(cam_scaled(gradcam_plus_raw(a, q)), {0, 0.428246, 0.002276, 1});
  const auto scored = scorecam_weights(doubles({2, 1}, {1, 2}));
  expect_values(scored, {0.731059, 0.268941});
  expect_values(weighted_channels(a, scored), {0.731059, 1.731059, 1.924234, 3.462117});
  const auto ablated = ablationcam_weights(doubles({5}, {1}), doubles({4, 6}, {1, 2}));
  expect_values(ablated, {0.2, -0.2});
  expect_values(weighted_channels(a, ablated), {0.2, 0.2, 0.8, 0.4});
}

TEST(LayerCam, LeavesNegativeGradientsOut) {
  const auto a = doubles({1, 2, 3, 4}, {1, 2, 1, 2}), q = doubles({-1, 1, 2, -2}, {1, 2, 1, 2});
  expect_values(layercam_raw(a, q), {6, 2});
  expect_values(hirescam_raw(a, q), {5, -6});
}

TEST(ScoreCamMasks, PutCornersOnCorners) {
  const auto masks = scorecam_masks(doubles({1, 3, 5, 9, 2, 2, 2, 2}, {2, 2, 2}), 3, 3);
  expect_values(masks[0], {0, .125, .25, .25, .4375, .625, .5, .75, 1});
  expect_values(masks[1], std::vector<double>(9, 0));
}

TEST(AblationCam, BehindALayerNormTheLibrarysValueLeavesNothingOfTheImage) {
  auto features = torch::empty({768, 7, 7});
  checks::fill_with_wave(features, 3, 2);
  EXPECT_EQ(library_ablation(features.relu()), 0);
  const auto rows = torch::layer_norm(ablated_pools(features, library_ablation(features)), {768});
  const auto others = rows.masked_select(torch::eye(768, torch::kBool).logical_not());
  EXPECT_NEAR(rows.diagonal().min().item<double>(), -27.694765, kGolden);
  EXPECT_NEAR(rows.diagonal().max().item<double>(), -27.694765, kGolden);
  EXPECT_NEAR(others.min().item<double>(), 0.036108, kGolden);
  EXPECT_NEAR(others.max().item<double>(), 0.036108, kGolden);
}

TEST(GradCam, NothingPositiveGivesZerosNotNan) {
  expect_values(cam_finished(doubles({-1, -2, -3, -4}, {1, 2, 2}), 2, 2), {0, 0, 0, 0});
  expect_values(min_max(doubles({3, 3, 3, 3}, {1, 2, 2})), {0, 0, 0, 0});
}

// 3 layers, 2 heads, 5 tokens of which 4 are patches.
struct AttentionExample {
  std::vector<Tensor> attention, gradients;
  AttentionExample() {
    for (int l = 0; l < 3; ++l) {
      auto z = torch::empty({1, 2, 5, 5}, torch::kFloat64), g = torch::empty_like(z);
      for (int k = 0; k < 2; ++k)
        for (int i = 0; i < 5; ++i)
          for (int j = 0; j < 5; ++j) {
            z[0][k][i][j] = ((i + 1) * (j + 2) * (k + 1) * (l + 1) % 7) / 2.0;
            g[0][k][i][j] = ((3 * i + 5 * j + 7 * k + 11 * l) % 9 - 4) / 10.0;
          }
      attention.push_back(torch::softmax(z, -1));
      gradients.push_back(g);
    }
  }
};

TEST(AttentionMaps, ReproduceTheWorkedExample) {
  const AttentionExample e;
  expect_values(e.attention[0][0][0][0], {0.058012, 0.095646, 0.157694, 0.259993, 0.428656});
  expect_values(rollout_patches(e.attention, 0, 1), {0.218824, 0.122387, 0.181310, 0.185886});
  expect_values(rollout_patches(e.attention, 1, 1), {0.197894, 0.104254, 0.150392, 0.119244});
  expect_values(attention_cam_patches(e.attention[2], e.gradients[2], 1, false),
                {0.026650, 0.005951, 0.013512, 0.016784});
  expect_values(attention_cam_patches(e.attention[2], e.gradients[2], 1, true), {0.016412, 0, 0.005301, 0});
  expect_values(attention_gradient_patches(e.gradients[2], 1), {0.15, 0.05, 0.2, 0.1});
  expect_values(chefer_patches(e.attention, e.gradients, 1), {0.122312, 0.009029, 0.118656, 0.019423});
  const auto last_two = legrad_patches(e.gradients[1], 1) + legrad_patches(e.gradients[2], 1);
  expect_values(legrad_patches(e.gradients[0], 1) + last_two, {0.38, 0.33, 0.35, 0.30});
  expect_values(min_max(grid_from_patches(last_two)), {0.75, 0, 1, 0.25});
}

TEST(PathIntegral, ReproducesTheWorkedExample) {
  const auto gradient = [](const Tensor& x) {
    const auto a = x[0], b = x[1];
    return torch::stack({2 * a + 2 * b + 3 * a * a, 2 * a});
  };
  const auto x = doubles({1, 2}, {2}), zero = torch::zeros_like(x);
  expect_values(integrated_gradient(x, zero, path_places(20, true), gradient), {4.026316, 2});
  expect_values(integrated_gradient(x, zero, path_places(50, true), gradient), {4.010204, 2});
  expect_values(integrated_gradient(x, zero, path_places(20, false), gradient), {3.999375, 2});
}

TEST(BlurredMaps, KeepAConstantAndSpreadAPoint) {
  const auto flat = torch::full({1, 9, 9}, 3.0);
  EXPECT_TRUE(torch::allclose(blurred_maps(flat, 2), flat));
  auto point = torch::zeros({1, 9, 9});
  point[0][4][4] = 1;
  const auto spread = blurred_maps(point, 1);
  EXPECT_NEAR(spread.sum().item<double>(), 1, 1e-6);
  // The ratio of neighbors in a Gaussian of sigma 1 is exp(-1/2).
  EXPECT_NEAR((spread[0][4][5] / spread[0][4][4]).item<double>(), std::exp(-0.5), 1e-6);
  EXPECT_EQ(blurred_maps(torch::rand({1, 3, 3}), 50).sizes(), (std::vector<int64_t>{1, 3, 3}));
}

TEST(RiseMasks, AreTheSameInAnyChunks) {
  Rng whole(7, 1), parts(7, 1);
  const auto all = rise_masks(6, 4, 0.5, 10, 13, whole);
  EXPECT_TRUE(torch::equal(
      all, torch::cat({rise_masks(2, 4, 0.5, 10, 13, parts), rise_masks(4, 4, 0.5, 10, 13, parts)})));
  EXPECT_GE(all.min().item<float>(), 0);
  EXPECT_LE(all.max().item<float>(), 1);
}

class GoldenVit : public ::testing::Test {
 protected:
  // The raw patch values of a method that ends with nothing but an upsampling: the corners of the upsampled 2
  // x 2 grid.
  Tensor map(const std::string& spec) {
    return make_method(spec, {target})->attribute(pixels, classes, std::vector<uint64_t>{1}, context).maps[0];
  }
  void expect_patches(const std::string& spec, const std::vector<double>& expected,
                      double tolerance = kGolden) {
    const auto m = map(spec);
    expect_values(torch::stack({m[0][0], m[0][3], m[3][0], m[3][3]}), expected, tolerance);
  }

  VitClassifier target{checks::golden_vit(), checks::golden_info()};
  Context context;
  Tensor pixels = (torch::arange(48, torch::kFloat64) * 0.3).cos().to(torch::kFloat32).view({1, 3, 4, 4});
  Tensor classes = torch::tensor({2}, torch::kInt64);
};

TEST_F(GoldenVit, LogitsAndAttention) {
  const auto logits = target.logits(pixels);
  expect_values(logits, {-1.120743, -0.382227, 0.239370});
  const auto tapped = tapped_gradients(target, pixels, classes, {"block.1.attention"});
  expect_values(tapped.values[0][0][0][0], {0.067302, 0.097870, 0.205849, 0.338265, 0.290715});
  expect_values(tapped.gradients[0][0][0][0], {0.122778, 0.157248, 0.369611, 0.333465, 0.301460});
}

TEST_F(GoldenVit, MethodsGiveTheKnownPatchValues) {
  expect_values(map("gradient")[0], {0.003502, 0.003502, 0.002411, 0.002238});
  expect_patches("ig:space=attention", {0.039205, 0.162512, 0.158545, 0.125979});
  expect_patches("rollout", {0.016526, 0.045234, 0.116359, 0.338406});
  expect_patches("chefer", {0.007198, 0.036255, 0.094592, 0.282493});
}

TEST_F(GoldenVit, ScaledMethodsGiveTheKnownPatchValuesUpToTheirScale) {
  const auto expect_scaled = [&](const std::string& spec, const std::vector<double>& raw) {
    const auto grid = grid_from_patches(doubles(raw, {1, 4}));
    const auto scaled = min_max(grid).flatten().contiguous();
    // The known values are rounded to 5e-7 each; numerator and denominator of the scaling have two of them.
    const double tolerance = 4 * 5e-7 / (grid.max() - grid.min()).item<double>();
    expect_patches(spec, {scaled.data_ptr<double>(), scaled.data_ptr<double>() + 4}, tolerance);
  };
  expect_scaled("gradcam:form=pooled", {0.014188, 0.029473, 0.047711, 0.041388});
  expect_scaled("legrad:layers=0", {0.067819, 0.111915, 0.188516, 0.186821});
  expect_scaled("legrad:pool=mean", {0.085085, 0.171958, 0.256588, 0.247017});
}

TEST_F(GoldenVit, GradCamFromImageToAreas) {
  const auto m = map("gradcam");
  expect_values(m, {0, .107626, .322877, .430503, .25, .309075, .427226, .486302, .75, .711975, .635924,
                    .597899, 1, .913424, .740273, .653698});
  const auto reference = torch::zeros_like(pixels);
  const SweepEnds ends{probabilities(target, pixels, context), probabilities(target, reference, context)};
  const auto curves = sweep(target, pixels, reference, hard_order(m.unsqueeze(0)).order, classes, ends,
                            SweepOptions{}, context)[0];
  const std::vector<double> top = {.557501, .555846, .556086, .569793, .564387,
                                   .631574, .630638, .630843, .631584, .632629};
  const std::vector<double> bottom = {.557501, .558480, .571437, .570963, .571300,
                                      .571243, .603934, .585333, .581347, .633117};
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(curves.top[i], top[i], kGolden);
    EXPECT_NEAR(curves.bottom[i], bottom[i], kGolden);
  }
  EXPECT_NEAR(metric_record("deletion").of(curves, AreaRule::kAuc10), 0.536582, kGolden);
  EXPECT_NEAR(metric_record("insertion").of(curves, AreaRule::kAuc10), 0.520935, kGolden);
}

TEST(Controls, ReproduceTheWorkedExamples) {
  checks::LinearTarget target(4);
  const Context context;
  const std::vector<uint64_t> streams = {1};
  const auto classes = torch::zeros({1}, torch::kInt64);
  auto block = torch::zeros({1, 3, 4, 4});
  block.slice(2, 1, 3).slice(3, 1, 3).fill_(1);
  const double c = 1.414214, e = 3.162278, i = 4.242641;
  expect_values(make_method("sobel", {target})->attribute(block, classes, streams, context).maps,
                {c, e, e, c, e, i, i, e, e, i, i, e, c, e, e, c});
  const double corner = 0.105399, edge = 0.286505, inner = 0.778801;
  expect_values(make_method("center:sigma=0.25", {target})->attribute(block, classes, streams, context).maps,
                {corner, edge, edge, corner, edge, inner, inner, edge, edge, inner, inner, edge, corner, edge,
                 edge, corner});
}

}  // namespace
}  // namespace aha
