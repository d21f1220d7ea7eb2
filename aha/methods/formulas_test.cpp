// The formulas of the methods on hand-made tensors, and the methods themselves on a transformer whose every
// figure is known (float64 figures, rounded to 6 digits).
#include <gtest/gtest.h>

#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
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
  std::vector<Tensor> attention, gradients;  // (2, 5, 5) each
  AttentionExample() {
    for (int l = 0; l < 3; ++l) {
      auto z = torch::empty({2, 5, 5}, torch::kFloat64), g = torch::empty_like(z);
      for (int k = 0; k < 2; ++k)
        for (int i = 0; i < 5; ++i)
          for (int j = 0; j < 5; ++j) {
            z[k][i][j] = ((i + 1) * (j + 2) * (k + 1) * (l + 1) % 7) / 2.0;
            g[k][i][j] = ((3 * i + 5 * j + 7 * k + 11 * l) % 9 - 4) / 10.0;
          }
      attention.push_back(torch::softmax(z, -1));
      gradients.push_back(g);
    }
  }
  // The patches of the class token's row, from the last block down to the first.
  Tensor followed(int first, const RowStep& step) const {
    return follow_class_row(1, step,
                            [&](const AttentionVisitor& visitor) {
                              for (int l = 3; l-- > first;) visitor(0, l, attention[l], gradients[l]);
                            })[0]
        .slice(0, 1);
  }
};

TEST(AttentionMaps, ReproduceTheWorkedExample) {
  const AttentionExample e;
  expect_values(e.attention[0][0][0], {0.058012, 0.095646, 0.157694, 0.259993, 0.428656});
  expect_values(e.gradients[0][0][0], {-0.4, 0.1, -0.3, 0.2, -0.2});
  expect_values(mean_attention(e.attention[2])[0].slice(0, 1), {0.160869, 0.217208, 0.066548, 0.112927});
  const auto rollout = [](const Tensor& r, int, const Tensor& a, const Tensor&) {
    return row_times(r, with_skip(mean_attention(a)));
  };
  expect_values(e.followed(0, rollout), {0.218824, 0.122387, 0.181310, 0.185886});
  expect_values(e.followed(1, rollout), {0.197894, 0.104254, 0.150392, 0.119244});
  const auto cam = attention_cam(e.attention[2], e.gradients[2], 1, false);
  expect_values(cam, {0.026650, 0.005951, 0.013512, 0.016784});
  expect_values(min_max(grid_from_patches(cam.unsqueeze(0))), {1, 0, 0.365253, 0.523357});
  expect_values(attention_cam(e.attention[2], e.gradients[2], 1, true), {0.016412, 0, 0.005301, 0});
  expect_values(e.followed(0,
                           [](const Tensor& r, int, const Tensor& a, const Tensor& g) {
                             return r + row_times(r, attention_times_gradient(a, g, HeadRule::kMeanFirst));
                           }),
                {0.122312, 0.009029, 0.118656, 0.019423});
  // Transformer Attribution with the attention as its own relevance.
  expect_values(e.followed(0,
                           [](const Tensor& r, int, const Tensor& a, const Tensor& g) {
                             return row_times(
                                 r, with_skip(attention_times_gradient(a, g, HeadRule::kReluFirst)));
                           }),
                {0.097597, 0.018636, 0.093929, 0.016656});
  const auto share = [&](int l) { return legrad_share(e.gradients[l]).slice(0, 1).unsqueeze(0); };
  const auto last_two = share(1) + share(2), all = share(0) + last_two;
  expect_values(all, {0.38, 0.33, 0.35, 0.30});
  expect_values(min_max(grid_from_patches(all)), {1, 0.375, 0.625, 0});
  expect_values(min_max(grid_from_patches(last_two)), {0.75, 0, 1, 0.25});
}

TEST(AttentionMaps, TransitionAndImportanceReproduceTheWorkedExample) {
  const AttentionExample e;
  const auto weights = integrated_row(e.gradients[2].select(1, 0)).slice(0, 1);
  expect_values(weights, {0.15, 0.05, 0.2, 0.1});
  const auto states = [&](bool last_twice) {
    return e.followed(0, [&](const Tensor& r, int l, const Tensor& a, const Tensor&) {
      return transition_step(r, a, l == 2, last_twice);
    });
  };
  expect_values(states(false), {0.878285, 0.680966, 0.716873, 0.740951});
  expect_values(states(false) * weights, {0.131743, 0.034048, 0.143375, 0.074095});
  expect_values(states(true), {1.772124, 1.371101, 1.515571, 1.513324});
  expect_values(states(true) * weights, {0.265819, 0.068555, 0.303114, 0.151332});
  expect_values(head_importance(e.attention[0], e.gradients[0]), {0.588785, 0.411215});
  const auto perception = [](const Tensor& r, int, const Tensor& a, const Tensor& g) {
    return r + row_times(r, attention_by_importance(a, g));
  };
  expect_values(e.followed(0, perception), {1.650035, 1.039230, 1.535600, 1.482785});
  expect_values(e.followed(0, perception) * weights, {0.247505, 0.051961, 0.307120, 0.148279});
  expect_values(e.followed(1, perception) * weights, {0.110804, 0.022489, 0.133197, 0.045574});
}

TEST(PathIntegral, ReproducesTheWorkedExample) {
  const auto gradient = [](const Tensor& x, const Tensor&) {
    const auto a = x.select(1, 0), b = x.select(1, 1);
    return torch::stack({2 * a + 2 * b + 3 * a * a, 2 * a}, 1);
  };
  const auto x = doubles({1, 2}, {1, 2}), zero = torch::zeros_like(x);
  const auto by = [&](int count, const char* rule) {
    return integrated_gradient(x, zero, path_points(count, rule), gradient);
  };
  expect_values(by(20, "inclusive"), {4.026316, 2});
  expect_values(by(50, "inclusive"), {4.010204, 2});
  expect_values(by(20, "midpoint"), {3.999375, 2});
  for (const int count : {2, 3, 20, 50}) expect_values(by(count, "gauss-legendre"), {4, 2}, 1e-12);
}

TEST(PathIntegral, GivesEachImageOfABatchItsOwnPath) {
  const auto gradient = [](const Tensor& x, const Tensor& images) {
    return x * (images + 1).unsqueeze(1).to(x.dtype());  // y = (image + 1) |x|^2 / 2
  };
  const auto x = torch::arange(1, 11, torch::kFloat64).view({5, 2});
  const auto found = integrated_gradient(x, torch::zeros({1, 2}, torch::kFloat64), path_points(7, "midpoint"),
                                         gradient);  // 35 points: several chunks
  EXPECT_TRUE(torch::allclose(found, x * x / 2 * torch::arange(1, 6, torch::kFloat64).view({5, 1})));
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
  expect_patches("trans-att", {0.013511, 0.047368, 0.090213, 0.143550});
  expect_patches("trans-att:variant=official", {0.002592, 0.029404, 0.068767, 0.048543});
  expect_patches("bi-att:start=1", {0.003512, 0.031399, 0.067739, 0.173792});
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
  expect_scaled("gradcam", {0.007148, 0.036254, 0.074759, 0.051345});
  expect_scaled("legrad:layers=0:pool=cls", {0.067819, 0.111915, 0.188516, 0.186821});
  expect_scaled("legrad", {0.085085, 0.171958, 0.256588, 0.247017});
}

// From the taps, block by block with whole matrices.
TEST_F(GoldenVit, TokenSizesAndHeadRulesAreTheirFormulas) {
  const auto tapped = tapped_values(target, pixels,
                                    {"block.0.attention", "block.0.value_out", "embed", "block.1.attention",
                                     "block.1.value_out", "block.0"});
  auto perception = torch::eye(5);
  for (int l : {0, 1}) {
    const auto size = tapped[3 * l + 1][0].norm(2, 1) / tapped[3 * l + 2][0].norm(2, 1);
    perception = perception + tapped[3 * l][0].mean(0).matmul(torch::diag(size)).matmul(perception);
  }
  const auto corners = [](const Tensor& m) { return torch::stack({m[0][0], m[0][3], m[3][0], m[3][3]}); };
  const auto feedback = corners(map("ig:space=attention"));
  EXPECT_TRUE(torch::allclose(corners(map("bi-att:variant=tokens:start=1")),
                              perception[0].slice(0, 1).abs() * feedback, 1e-5, 1e-7));
  // Values behind the projection are what a token gives that attends to itself alone.
  const auto vit = checks::golden_vit();
  const auto qkv = tapped_values(target, pixels, {"block.0.norm1"})[0].matmul(
                       vit->named_parameters()["blocks.0.attn.qkv.weight"].t()) +
                   vit->named_parameters()["blocks.0.attn.qkv.bias"];
  EXPECT_TRUE(torch::allclose(
      tapped[1], qkv.slice(2, 16).matmul(vit->named_parameters()["blocks.0.attn.proj.weight"].t()), 1e-5,
      1e-6));

  const auto gradients = tapped_gradients(target, pixels, classes, attention_taps(target));
  auto relevance = torch::eye(5);
  for (int l : {0, 1})
    relevance =
        relevance + (gradients.values[l][0] * gradients.gradients[l][0]).relu().mean(0).matmul(relevance);
  EXPECT_TRUE(torch::allclose(corners(map("chefer:relu=heads")), relevance[0].slice(0, 1), 1e-5, 1e-7));
}

TEST_F(GoldenVit, APathMayBeginElsewhere) {
  // The baseline's own color as the image: every point of the path is the image.
  const auto flat = baseline_color(target, "mean", pixels).expand({1, 3, 4, 4}).contiguous();
  const auto one = integrated_attention_rows(target, flat, classes, baseline_color(target, "mean", pixels),
                                             path_points(1, "inclusive"), context);
  const auto many = integrated_attention_rows(target, flat, classes, baseline_color(target, "mean", pixels),
                                              path_points(5, "gauss-legendre"), context);
  EXPECT_TRUE(torch::allclose(one, many, 1e-5, 1e-7));
  EXPECT_FALSE(torch::allclose(map("ig:space=attention:baseline=mean"), map("ig:space=attention")));
  EXPECT_TRUE(torch::equal(map("ig:space=attention:baseline=black"), map("ig:space=attention")))
      << "its normalization subtracts nothing";
}

TEST_F(GoldenVit, GradCamFromImageToAreas) {
  const auto m = map("gradcam");
  expect_values(m, {0, .107626, .322877, .430503, .25, .309075, .427226, .486302, .75, .711975, .635924,
                    .597899, 1, .913424, .740273, .653698});
  const auto reference = torch::zeros_like(pixels);
  const SweepEnds ends{logits_of(target, pixels, context), logits_of(target, reference, context)};
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
  EXPECT_NEAR(value_of_curves(metric_record("deletion"), curves, AreaRule::kAuc10), 0.536582, kGolden);
  EXPECT_NEAR(value_of_curves(metric_record("insertion"), curves, AreaRule::kAuc10), 0.520935, kGolden);
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
