// The methods that search on the image: their parts on worked examples, and their answers where the truth is
// known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "aha/base/parallel.h"
#include "aha/base/rng.h"
#include "aha/methods/catalog.h"
#include "aha/methods/convex_projection.h"
#include "aha/methods/mda.h"
#include "aha/methods/patch_maps.h"
#include "aha/methods/region_search.h"
#include "aha/methods/vit_cx.h"
#include "aha/objective/objective_step.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_targets.h"
#include "aha/testing/toy_classifiers.h"

namespace aha {
namespace {

using ::testing::HasSubstr;

constexpr double kSearchGolden = 1e-5;

void expect_list(const std::vector<double>& found, const std::vector<double>& expected,
                 double tolerance = kSearchGolden) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance) << i;
}

// ---- MDA's magnitudes ----

TEST(ConvexProjection, ReproducesTheWorkedExamples) {
  expect_list(convex_projection({1, .6, .5, .2, .15, 0}), {1, 0.631034, 0.437931, 0.244828, 0.122414, 0});
  const auto x = convex_projection({1, 1, .9, .4, .35, .05, 0});
  expect_list(x, {1, .83, .66, .49, .32, .15, 0});
  expect_list(mda_values(x, 256), {0.142331, 0.113997, 0.085664, 0.057331, 0.028997, 0.000586});
  // A concave curve is a convex one upside down.
  auto up = convex_projection({1, .6, .6, .3, .05, 0});
  for (double& value : up) value = 1 - value;
  expect_list(up, {0, .32, .515, .71, .905, 1});
}

// Hildreth: every constraint's multiplier in turn, until nothing moves.
std::vector<double> convex_projection_ref(const std::vector<double>& r) {
  const size_t n = r.size() - 1;
  std::vector<double> x = r, bend(n + 1), zero(n + 1);
  for (int sweep = 0; sweep < 20000; ++sweep)
    for (size_t i = 1; i < n; ++i) {
      const double left = i > 1, right = i + 1 < n;  // the ends do not move
      const double by = std::max(-bend[i], -(x[i - 1] - 2 * x[i] + x[i + 1]) / (left + 4 + right));
      bend[i] += by;
      x[i - 1] += left * by;
      x[i] -= 2 * by;
      x[i + 1] += right * by;
      const double lift = std::max(-zero[i], -x[i]);
      zero[i] += lift;
      x[i] += lift;
    }
  return x;
}

TEST(ConvexProjection, AgreesWithTheSlowSolverOnRandomCurves) {
  Rng rng(7);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 2 + trial % 9;
    std::vector<double> r;
    for (int i = 0; i <= n; ++i) r.push_back(rng.uniform());
    if (trial % 3 > 0) std::sort(r.rbegin(), r.rend());
    if (trial % 3 == 2)  // a long tail of zeros: the curve would like to go below
      for (int i = n; i > n / 2; --i) r[i] = trial % 2 && i == n ? 0.1 : 0;
    expect_list(convex_projection(r), convex_projection_ref(r), 1e-8);
  }
}

TEST(ConvexProjection, LongCurvesStayWithinTheirBounds) {
  Rng rng(8);
  for (int trial = 0; trial < 30; ++trial) {
    std::vector<double> r = {1};
    for (int i = 0; i < 196; ++i)
      r.push_back(std::max(0.0, r.back() - (rng.uniform() < 0.1 ? 0.2 * rng.uniform() : 0)));
    const auto x = convex_projection(r);
    EXPECT_EQ(x.front(), r.front());
    EXPECT_NEAR(x.back(), r.back(), 1e-15);
    for (size_t i = 1; i + 1 < x.size(); ++i) {
      EXPECT_GE(x[i], -1e-12);
      EXPECT_GE(x[i - 1] - 2 * x[i] + x[i + 1], -1e-12);
    }
  }
}

TEST(Mda, AMixtureIsDenseWhereTheSparseMapSaysSomething) {
  const std::vector<double> sparse = {0.3, 0.1, 0.005, 0.004};
  expect_list(mda_mixture(sparse, 0, 0.005), sparse);
  // (n - i) / n = 0.75, 0.5, 0.25 and the small value itself, scaled to a largest of 0.3
  expect_list(mda_mixture(sparse, 1, 0.005), {0.3, 0.2, 0.1, 0.0016});
  expect_list(mda_mixture(sparse, 0.5, 0.005), {0.3, 0.15, 0.0525, 0.0028});
}

// ---- ViT-CX ----

TEST(VitCx, ReproducesTheWorkedExample) {
  const auto features =
      torch::tensor({0., 1., 2., 4., 0., 2., 4.2, 8., 4., 1., 0., 2., 3.9, 1., 0., 2.2}, torch::kFloat64)
          .view({4, 2, 2});
  const auto masks = unit_masks(features, 2, 2);
  expect_list(checks::doubles(masks),
              {0, .25, .5, 1, 0, .25, .525, 1, 1, .25, 0, .5, 1, .256410, 0, .564103});
  const auto d = mask_distances(masks, 2, 2);
  expect_list({d[0][1].item<double>(), d[0][2].item<double>(), d[0][3].item<double>(), d[1][2].item<double>(),
               d[1][3].item<double>(), d[2][3].item<double>()},
              {0.000189, 0.571429, 0.533888, 0.575552, 0.538372, 0.001188});
  const auto cluster = complete_linkage(d, 0.1);
  EXPECT_EQ(cluster, (std::vector<int64_t>{0, 0, 1, 1}));
  const auto merged = cluster_masks(masks, cluster, 2, 2);
  expect_list(checks::doubles(merged), {0, .25, .5125, 1, 1, .253205, 0, .532051});
  expect_list(checks::doubles(weighed_masks(merged, torch::tensor({0.7, 0.25}, torch::kFloat64), 2, 2)),
              {0.125, 0.236783, 0.35, 0.271862});
}

TEST(VitCx, DistancesOnThePatchGridAreThoseOfTheEnlargedMasks) {
  torch::manual_seed(3);
  auto grids = torch::randn({12, 5, 5}, torch::kFloat64);
  grids[4].fill_(2.5);  // constant: no mask
  const auto masks = unit_masks(grids, 40, 35);
  ASSERT_EQ(masks.size(0), 11);
  const auto large = upsampled(grids, 40, 35);
  std::vector<Tensor> plain;
  for (int64_t k = 0; k < 12; ++k)
    if (k != 4) plain.push_back((large[k] - large[k].min()) / (large[k].max() - large[k].min()));
  const auto flat = torch::stack(plain).flatten(1);
  EXPECT_LT((upsampled(masks, 40, 35).flatten(1) - flat).abs().max().item<double>(), 1e-12);
  const auto length = flat.norm(2, 1);
  const auto expected = 1 - flat.matmul(flat.t()) / (length.unsqueeze(1) * length);
  EXPECT_LT((mask_distances(masks, 40, 35) - expected).abs().max().item<double>(), 1e-12);
}

// The two nearest clusters, looked for among all pairs.
std::vector<int64_t> complete_linkage_ref(const Tensor& d, double threshold) {
  std::vector<std::vector<int64_t>> clusters;
  for (int64_t i = 0; i < d.size(0); ++i) clusters.push_back({i});
  for (;;) {
    double nearest = threshold;
    size_t a = 0, b = 0;
    for (size_t i = 0; i < clusters.size(); ++i)
      for (size_t j = i + 1; j < clusters.size(); ++j) {
        double farthest = 0;
        for (const int64_t p : clusters[i])
          for (const int64_t q : clusters[j]) farthest = std::max(farthest, d[p][q].item<double>());
        if (farthest < nearest) nearest = farthest, a = i, b = j;
      }
    if (b == 0) break;
    clusters[a].insert(clusters[a].end(), clusters[b].begin(), clusters[b].end());
    clusters.erase(clusters.begin() + static_cast<int64_t>(b));
  }
  std::vector<int64_t> of(d.size(0)), number(d.size(0), -1), out;
  for (size_t c = 0; c < clusters.size(); ++c)
    for (const int64_t member : clusters[c]) of[member] = static_cast<int64_t>(c);
  int64_t next = 0;
  for (const int64_t c : of) {
    if (number[c] < 0) number[c] = next++;
    out.push_back(number[c]);
  }
  return out;
}

TEST(CompleteLinkage, AgreesWithTheSearchAmongAllPairs) {
  torch::manual_seed(4);
  for (int trial = 0; trial < 12; ++trial) {
    const auto points = torch::rand({14, 3}, torch::kFloat64);
    const auto d = (points.unsqueeze(1) - points).norm(2, 2);
    for (const double threshold : {0.0, 0.3, 0.6, 10.0})
      EXPECT_EQ(complete_linkage(d, threshold), complete_linkage_ref(d, threshold))
          << trial << " " << threshold;
  }
}

TEST(CompleteLinkage, ADistanceAtTheThresholdDoesNotMerge) {
  const auto d = torch::tensor({0., 0.1, 0.1, 0.}, torch::kFloat64).view({2, 2});
  EXPECT_EQ(complete_linkage(d, 0.1), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(complete_linkage(d, 0.1000001), (std::vector<int64_t>{0, 0}));
}

Attribution made_by(const std::string& spec, Classifier& target, const Tensor& pixels, const Tensor& classes,
                    uint64_t seed = 0) {
  Context context;
  context.seed = seed;
  std::vector<uint64_t> streams(static_cast<size_t>(pixels.size(0)));
  std::iota(streams.begin(), streams.end(), uint64_t{5});
  return make_method(spec, {target})->attribute(pixels, classes, streams, context);
}

Tensor waves(int64_t count, int64_t size) {
  Tensor pixels = torch::empty({count, 3, size, size});
  checks::fill_with_wave(pixels, 5, 0.5);
  return pixels + 0.5;
}

TEST(VitCx, WithoutNoiseChanceHasNoPart) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  const auto pixels = waves(1, 16);
  const auto classes = torch::zeros({1}, torch::kInt64);
  EXPECT_TRUE(torch::equal(made_by("vit-cx:noise=0", target, pixels, classes, 0).maps,
                           made_by("vit-cx:noise=0", target, pixels, classes, 1).maps));
  const auto one = made_by("vit-cx", target, pixels, classes),
             three = made_by("vit-cx:draws=3", target, pixels, classes);
  EXPECT_FALSE(torch::equal(one.maps, three.maps));
  EXPECT_EQ(three.made[0].passes.forwards - 2, 3 * (one.made[0].passes.forwards - 2));
}

// ---- searches where the truth is known ----

// The logit is linear in the pixels: with a black reference a region counts what it says, whatever else is
// shown.
TEST(Greedy, FindsTheTrueOrderOfALinearTarget) {
  const checks::MemoryDataset data = checks::noise_images(2, 16, 3);
  checks::LinearToy target(16);
  const auto pixels = checks::pixels_of(data);
  const auto grid = make_grid(16, 16, 8);
  const auto truth = std::get<1>(pool(grid, target.importance(pixels)).sort(1, true));  // (B, K)
  for (const std::string spec :
       {"greedy:references=black:window=0", "greedy:references=black:window=0:ends=front",
        "greedy:references=black:window=0:ends=back"}) {
    const auto made = made_by(spec, target, pixels, torch::zeros({2}, torch::kInt64));
    EXPECT_TRUE(torch::equal(std::get<1>(pool(grid, made.maps).sort(1, true)), truth)) << spec;
    // One forward for nothing, then every region left at each step but the last; two directions.
    EXPECT_EQ(made.made[0].passes.forwards, 2 * (1 + 64 * 65 / 2 - 1)) << spec;
  }
}

TEST(Greedy, AWindowAsksLess) {
  const checks::MemoryDataset data = checks::noise_images(1, 16, 3);
  checks::LinearToy target(16);
  const auto made = made_by("greedy:window=4:ends=front", target, checks::pixels_of(data),
                            torch::zeros({1}, torch::kInt64));
  // All 64 once, 4 at 60 steps, then 3, 2; three references, two directions.
  EXPECT_EQ(made.made[0].passes.forwards, 6 * (1 + 64 + 60 * 4 + 3 + 2));
}

TEST(Mda, FindsThePlantedRegions) {
  const auto planted = checks::planted_images(3, 32, 5);
  checks::PlantedToy target(32);
  const auto pixels = checks::pixels_of(planted.data);
  const auto classes =
      torch::tensor(std::vector<int64_t>(planted.data.labels.begin(), planted.data.labels.end()));
  for (const std::string spec : {"mda", "mda:gamma=1", "mda:smoothed=true"}) {
    const auto made = made_by(spec, target, pixels, classes);
    for (int64_t b = 0; b < 3; ++b) {
      const auto [y, x] = planted.corner[b];
      const Tensor inside =
          made.maps[b].slice(0, y, y + checks::kPlantedSide).slice(1, x, x + checks::kPlantedSide);
      EXPECT_GT(inside.mean().item<double>(), 4 * made.maps[b].mean().item<double>()) << spec;
    }
  }
}

TEST(Mda, RegionsArePatchesAndThePriorIsAnyMethod) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  EXPECT_EQ(region_side(target), 4);
  const auto pixels = waves(2, 16);
  const auto classes = torch::tensor({1, 2}, torch::kInt64);
  const auto made = made_by("mda:prior=chefer", target, pixels, classes);
  const auto cells = made.maps.view({2, 4, 4, 4, 4});
  EXPECT_TRUE(torch::equal(cells, cells.slice(2, 0, 1).slice(4, 0, 1).expand_as(cells)))
      << "constant on each patch";
  EXPECT_EQ(made.made[0].passes.backwards, 1) << "chefer's";
  EXPECT_EQ(made_by("mda:prior=random", target, pixels, classes).made[0].passes.backwards, 0);
  EXPECT_THAT(checks::message_of([&] { make_method("mda:prior=chefr", {target}); }), HasSubstr("chefer"));
}

TEST(Optimized, ImprovesItsObjectiveAndRanksALinearTarget) {
  const checks::MemoryDataset data = checks::noise_images(1, 16, 9);
  checks::LinearToy target(16);
  const auto pixels = checks::pixels_of(data);
  const auto classes = torch::zeros({1}, torch::kInt64);
  ObjectiveOptions options;
  options.reference_choice = "all";
  options.steps = 32;
  const auto loss_of = [&](const Tensor& map) {
    return objective(target, map, {pixels, classes}, draw_step(options, {99, 0, 0, 0, 1}, 1, 16, 16), options,
                     Context())
        .loss.item<double>();
  };
  const auto few = made_by("optimized:steps=5", target, pixels, classes),
             many = made_by("optimized:steps=60", target, pixels, classes);
  EXPECT_LT(loss_of(few.maps), loss_of(torch::zeros({1, 16, 16})));
  EXPECT_LT(loss_of(many.maps), loss_of(few.maps));
  EXPECT_EQ(many.made[0].steps, 60);
  EXPECT_EQ(many.made[0].passes.backwards, 60 * 2 * 4 * 3);
  EXPECT_TRUE(std::isfinite(many.made[0].loss));
  // Rank correlation with the truth, on the 8 x 8 cells of the noise. Three references differ in what is
  // true.
  const auto grid = make_grid(16, 16, 8);
  const auto ranks = [](const Tensor& values) {
    return values.argsort(0, false).argsort(0, false).to(torch::kFloat64);
  };
  Tensor truth = target.importance(pixels);
  truth = truth + target.importance(pixels - 0.45);  // black and about mean
  const auto a = ranks(pool(grid, many.maps)[0]), b = ranks(pool(grid, truth)[0]);
  const double correlation =
      (((a - a.mean()) * (b - b.mean())).mean() / (a.std(false) * b.std(false))).item<double>();
  EXPECT_GT(correlation, 0.9);
}

TEST(Optimized, MayStartFromAnotherMethod) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  const auto pixels = waves(1, 16);
  const auto classes = torch::zeros({1}, torch::kInt64);
  const auto start = made_by("optimized:steps=0:init=chefer", target, pixels, classes);
  EXPECT_EQ(start.made[0].passes.backwards, 1);
  EXPECT_EQ(start.made[0].steps, 0);
  EXPECT_NEAR(start.maps.max().item<double>(), 25, 25. / 64) << "bilinear between 8 x 8 ranks of 0..25";
  EXPECT_NEAR(start.maps.min().item<double>(), 0, 25. / 64);
  const auto moved = made_by("optimized:steps=3:init=chefer", target, pixels, classes);
  EXPECT_FALSE(torch::equal(start.maps, moved.maps));
  EXPECT_EQ(moved.made[0].passes.backwards, 1 + 3 * 24);
}

// A search turns a last bit into another order.
TEST(Searches, TheSameBitsAloneInABatchAndWithAnyNumberOfThreads) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  const auto pixels = waves(3, 16);
  const auto classes = torch::tensor({0, 3, 1}, torch::kInt64);
  const int before = threads();
  for (const std::string spec : {"mda", "vit-cx", "greedy:grid=3", "optimized:steps=3"}) {
    set_threads(2);
    const auto together = made_by(spec, target, pixels, classes).maps;
    set_threads(1);
    EXPECT_TRUE(torch::equal(made_by(spec, target, pixels, classes).maps, together)) << spec;
    set_threads(3);
    for (int64_t b = 0; b < 3; ++b) {
      const uint64_t stream = 5 + static_cast<uint64_t>(b);
      const auto alone =
          make_method(spec, {target})
              ->attribute(pixels.narrow(0, b, 1), classes.narrow(0, b, 1), {&stream, 1}, Context())
              .maps[0];
      EXPECT_TRUE(torch::equal(alone, together[b])) << spec << " " << b;
    }
  }
  set_threads(before);
}

TEST(Searches, StopWhenToldTo) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  const auto pixels = waves(1, 16);
  const uint64_t stream = 1;
  Context context;
  context.cancel->cancel();
  for (const std::string spec : {"mda", "vit-cx", "greedy", "optimized"})
    EXPECT_THROW(make_method(spec, {target})
                     ->attribute(pixels, torch::zeros({1}, torch::kInt64), {&stream, 1}, context),
                 Error)
        << spec;
}

}  // namespace
}  // namespace aha
