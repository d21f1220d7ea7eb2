// Methods that ask a target about many masked images: rise, tis, occlusion, and when they have asked enough.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <cmath>

#include "aha/base/parallel.h"
#include "aha/methods/catalog.h"
#include "aha/methods/kmeans.h"
#include "aha/methods/rank_error.h"
#include "aha/methods/rise.h"
#include "aha/methods/tis.h"
#include "aha/networks/torchscript.h"
#include "aha/testing/checks.h"
#include "aha/testing/close.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

using ::testing::HasSubstr;

// The probability of class 0 is linear in the pixels: 0.5 + sum_i weights_i (x_i - mean).
class LinearProbability : public Classifier {
 public:
  LinearProbability(const Tensor& weights) : weights_(weights.to(torch::kFloat64)) {
    info_ = checks::plain_info("linear probability", static_cast<int>(weights.size(1)));
    info_.classes = 2;
    info_.mean_color = {0.5, 0.5, 0.5};
  }
  Tensor logits(const Tensor& pixels, Taps*) override {
    const auto p = 0.5 + ((pixels.to(torch::kFloat64) - 0.5) * weights_).sum({1, 2, 3});
    return torch::stack({p.log(), (1 - p).log()}, 1).to(torch::kFloat32);
  }

 private:
  Tensor weights_;  // (3, H, W)
};

// Its answer has nothing to do with any place of the image: a hash of the pixels.
class HashTarget : public Classifier {
 public:
  explicit HashTarget(int size) {
    info_ = checks::plain_info("hash", size);
    info_.classes = 2;
  }
  Tensor logits(const Tensor& pixels, Taps*) override {
    const auto waves = torch::arange(1, pixels[0].numel() + 1, torch::kFloat64).sqrt() * 1e3;
    return torch::stack({(pixels.flatten(1).to(torch::kFloat64).matmul(waves)).sin(),
                         torch::zeros({pixels.size(0)}, torch::kFloat64)},
                        1)
        .to(torch::kFloat32);
  }
};

Attribution made(const std::string& spec, Classifier& target, const Tensor& pixels, uint64_t stream = 1) {
  return make_method(spec, {target})
      ->attribute(pixels, torch::zeros({pixels.size(0)}, torch::kInt64),
                  std::vector<uint64_t>(static_cast<size_t>(pixels.size(0)), stream), Context());
}

Tensor wave_image(int64_t size) {
  auto pixels = torch::empty({1, 3, size, size});
  checks::fill_with_wave(pixels, 5, 0.5);
  return pixels + 0.5;
}

// Importance in soft hills, so that neighbors are alike and no two places are equal.
Tensor hills(int64_t size) {
  const auto at = torch::arange(size, torch::kFloat64) / static_cast<double>(size);
  const auto field = (at * 5).sin().unsqueeze(1) + (at * 7 + 1).cos().unsqueeze(0) + at.unsqueeze(1) * at;
  return field.unsqueeze(0).expand({3, size, size}) / (3.0 * static_cast<double>(size * size));
}

TEST(RiseMasks, EqualThePlainOnesUpToRounding) {
  for (const auto& [cells, height, width] :
       {std::array<int64_t, 3>{7, 20, 33}, {4, 8, 8}, {1, 5, 6}, {9, 7, 5}}) {
    Rng one(3, 4), other(3, 4);
    const auto fast = rise_masks(20, cells, 0.4, height, width, one),
               plain = rise_masks_plain(20, cells, 0.4, height, width, other);
    // Two products and three sums of numbers up to 1, and places up to `cells`.
    EXPECT_LT((fast - plain).abs().max().item<double>(), 20 * checks::kF32Epsilon * cells) << cells;
    EXPECT_EQ(one.bits(), other.bits()) << "the same random numbers are taken";
  }
}

TEST(Rise, IsTheMeanOfMasksTimesProbability) {
  LinearProbability target(hills(12));
  const auto pixels = wave_image(12);
  const auto map = made("rise:masks=150:cells=4:share=0.3", target, pixels, 9).maps[0];
  Rng rng(0, stream_id({0x72697365, 9}));
  const auto masks = rise_masks_plain(150, 4, 0.3, 12, 12, rng);
  const auto shown = 0.5 + (pixels - 0.5) * masks.unsqueeze(1);
  const auto probs = torch::softmax(target.logits(shown, nullptr).to(torch::kFloat64), 1).select(1, 0);
  const auto expected = (probs.view({-1, 1, 1}) * masks).sum(0) / (150 * 0.3);
  EXPECT_LT((map - expected).abs().max().item<double>(), 1e-5);
}

// E[m_i m_j] = share^2 + share (1 - share) mean over offsets of (A A^T)_ij, A the upsampling cut there; so
// the map that rise tends to is known where the probability is linear.
TEST(Rise, TendsToTheExpectationOnALinearTarget) {
  constexpr int64_t kSize = 8, kCells = 4, kMasks = 20000;
  constexpr double kShare = 0.5;
  LinearProbability target(20 * hills(kSize));
  const auto pixels = wave_image(kSize);
  const auto basis = at::upsample_bilinear2d(torch::eye(kCells * kCells, torch::kFloat64).view({-1, 1, 4, 4}),
                                             {10, 10}, false);  // (16, 1, 10, 10)
  auto moments = torch::zeros({64, 64}, torch::kFloat64);
  for (int64_t y = 0; y < 2; ++y)
    for (int64_t x = 0; x < 2; ++x) {
      const auto a = basis.slice(2, y, y + 8).slice(3, x, x + 8).reshape({16, 64});
      moments += a.t().matmul(a) / 4;
    }
  moments = kShare * kShare + kShare * (1 - kShare) * moments;
  const auto evidence = ((pixels[0].to(torch::kFloat64) - 0.5) * 20 * hills(kSize)).sum(0).flatten();  // (64)
  const auto expected = (0.5 * kShare + moments.matmul(evidence)) / kShare;
  const auto map = made("rise:cells=4:masks=" + std::to_string(kMasks), target, pixels).maps.flatten();
  // A term of the mean is at most 1 / share in size.
  const double bound = 5 * (1 / kShare) / std::sqrt(static_cast<double>(kMasks));
  EXPECT_LT((map - expected).abs().max().item<double>(), bound);
  const auto ranks = [](const Tensor& v) { return v.argsort().argsort().to(torch::kFloat64); };
  const double distance = (ranks(map) - ranks(expected)).square().mean().item<double>();
  EXPECT_GT(1 - 6 * distance / (64. * 64 - 1), 0.98) << "Spearman's correlation with the expectation";
}

TEST(Occlusion, IsExactOnALinearTarget) {
  constexpr int64_t kSize = 11, kWindow = 4, kStride = 3;  // the last windows are cut by the border
  checks::LinearTarget target(kSize);
  const auto pixels = wave_image(kSize);
  const auto color = torch::tensor(std::vector<double>(kImageNetMeanColor.begin(), kImageNetMeanColor.end()));
  const auto std = torch::tensor(
      std::vector<double>(target.info().input.std.begin(), target.info().input.std.end()), torch::kFloat64);
  for (const std::string reference : {"mean", "black"}) {
    const auto hidden = reference == "mean" ? color.view({3, 1, 1}) : torch::zeros({3, 1, 1});
    const auto evidence = ((pixels[0] - hidden) * target.weights[0] / std.view({3, 1, 1}))
                              .sum(0)
                              .to(torch::kFloat64);  // (H, W)
    auto falls = torch::zeros({kSize, kSize}, torch::kFloat64), covered = torch::zeros_like(falls);
    int windows = 0;
    for (int64_t top = 0; top < 10; top += kStride)
      for (int64_t left = 0; left < 10; left += kStride, ++windows) {
        const auto in = [&](const Tensor& t) {
          return t.slice(0, top, top + kWindow).slice(1, left, left + kWindow);
        };
        in(falls) += in(evidence).sum();
        in(covered) += 1;
      }
    const auto found = made("occlusion:window=4:stride=3:score=logit:reference=" + reference, target, pixels);
    EXPECT_EQ(found.made[0].passes.forwards, windows + 1);
    const double scale = falls.abs().max().item<double>();
    EXPECT_LT((found.maps[0] - falls / covered).abs().max().item<double>(), 1e-5 * scale) << reference;
  }
}

TEST(Occlusion, ChoosesItsSizesByTheInputAndRefusesGaps) {
  checks::LinearTarget target(224);
  EXPECT_THAT(make_method("occlusion", {target})->identity(), HasSubstr("\"window\":16"));
  EXPECT_THAT(make_method("occlusion", {target})->identity(), HasSubstr("\"stride\":8"));
  EXPECT_THAT(checks::message_of([&] { make_method("occlusion:window=4:stride=5", {target}); }),
              HasSubstr("stride of at most the window"));
  EXPECT_THAT(checks::message_of([&] { make_method("occlusion:window=300", {target}); }), HasSubstr("224"));
}

// ---- tis ----

TEST(Tis, ReproducesTheWorkedExample) {
  const auto centroids =
      torch::tensor({.9f, .1f, .5f, .2f, .3f, .8f, .7f, .1f, .2f, .4f, .6f, .9f}).view({3, 4});
  const auto kept = kept_patches(centroids, 0.5);
  EXPECT_TRUE(torch::equal(kept, torch::tensor({0, 2, 1, 2, 2, 3}, torch::kInt64).view({3, 2})));
  PatchMeans means(4);
  const double scores[] = {.8, .3, .5};
  for (int k = 0; k < 3; ++k) means.add(scores[k], {kept.data_ptr<int64_t>() + 2 * k, 2});
  EXPECT_TRUE(torch::allclose(means.map(), torch::tensor({0.8f, 0.3f, 0.533333f, 0.5f}), 0, 1e-5));
}

TEST(Tis, EqualEntriesAreThoseOfTopk) {
  const Tensor zeros = torch::zeros({1, 196});
  EXPECT_TRUE(
      torch::equal(kept_patches(zeros, 0.5)[0], std::get<0>(std::get<1>(torch::zeros(196).topk(98)).sort())));
  EXPECT_EQ(kept_patches(torch::ones({1, 3}), 0.1).size(1), 1) << "at least one";
}

TEST(Tis, SubsetsOfTheGoldenTransformerHaveTheKnownScores) {
  VitClassifier target(checks::golden_vit(), checks::golden_info());
  const auto pixels = (torch::arange(48, torch::kFloat64) * 0.3).cos().to(torch::kFloat32).view({1, 3, 4, 4});
  const auto subsets = torch::tensor({0, 1, 1, 2, 2, 3, 0, 3}, torch::kInt64).view({1, 4, 2});
  const auto scores = torch::softmax(target.patch_subset_logits(pixels, subsets), 2)[0].select(1, 2);
  EXPECT_TRUE(torch::allclose(scores, torch::tensor({0.364951f, 0.533395f, 0.563916f, 0.534400f}), 0, 1e-5));
  PatchMeans means(4);
  for (int k = 0; k < 4; ++k) means.add(scores[k].item<double>(), {subsets.data_ptr<int64_t>() + 2 * k, 2});
  EXPECT_TRUE(
      torch::allclose(means.map(), torch::tensor({0.449675f, 0.449173f, 0.548655f, 0.549158f}), 0, 1e-5));
}

TEST(Tis, AsksAboutEqualSubsetsOnceAndSaysSo) {
  checks::Counted<VitClassifier> target(checks::golden_vit(), checks::golden_info());
  const auto pixels = wave_image(4);
  const auto found = made("tis:masks=500", target, pixels);  // of 4 patches there are 6 halves
  const double subsets = (found.made[0].passes.forwards - 1) / (3. / 5);
  EXPECT_NEAR(subsets, std::round(subsets), 1e-9);
  EXPECT_LE(subsets, 6);
  EXPECT_EQ(found.maps.min().item<float>(), 0);
  EXPECT_EQ(found.maps.max().item<float>(), 1);
}

TEST(KMeans, AgreesWithTheObviousLoops) {
  torch::manual_seed(1);
  const auto rows = torch::randn({700, 12}) + 3 * torch::randn({700, 1});
  for (const int64_t clusters : {1, 5, 40, 900}) {
    Rng one(1, 2), other(1, 2);
    const auto fast = k_means(rows, {.clusters = clusters}, one, Context()),
               plain = k_means_plain(rows, {.clusters = clusters}, other);
    EXPECT_EQ(fast.iterations, plain.iterations) << clusters;
    EXPECT_LT((fast.centroids - plain.centroids).abs().max().item<double>(), 1e-4) << clusters;
  }
}

TEST(KMeans, HasTheSameBitsForAnyNumberOfThreads) {
  torch::manual_seed(2);
  const auto rows = torch::randn({5000, 33});
  std::vector<Tensor> found;
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    Rng rng(1, 2);
    found.push_back(k_means(rows, {.clusters = 300}, rng, Context()).centroids);
  }
  set_threads(0);
  EXPECT_TRUE(torch::equal(found[0], found[1]));
  EXPECT_TRUE(torch::equal(found[0], found[2]));
}

// ---- until ----

Tensor rank_shares(const Tensor& maps) {  // (R, H, W) -> (R, H W)
  const auto flat = maps.flatten(1);
  return flat.argsort(int64_t{1}).argsort(int64_t{1}).to(torch::kFloat64) / static_cast<double>(flat.size(1));
}

// Standard deviation of a region's rank over independent runs, root mean square over regions.
double true_rank_error(const Tensor& maps) {
  return rank_shares(maps).var(0).mean().sqrt().item<double>();
}

TEST(RankError, IsCalibrated) {
  constexpr int64_t kSize = 16, kRuns = 60;
  LinearProbability target(0.8 * hills(kSize));
  const auto pixels = torch::ones({1, 3, kSize, kSize});
  for (const int64_t masks : {64, 512, 4096}) {
    std::vector<Tensor> maps;
    double predicted = 0;
    for (uint64_t run = 0; run < kRuns; ++run) {
      Rng rng(run, 1);
      RiseSums sums(kSize, kSize);
      const auto m = rise_masks(masks, 3, 0.5, kSize, kSize, rng);
      sums.add(m, torch::softmax(target.logits(0.5 + (pixels - 0.5) * m.unsqueeze(1), nullptr), 1)
                      .select(1, 0)
                      .contiguous());
      maps.push_back(sums.map(0.5));
      predicted += sums.rank_error() / kRuns;
    }
    const double truth = true_rank_error(torch::stack(maps));
    std::printf("%ld masks: predicted rank error %.4f, measured %.4f\n", static_cast<long>(masks), predicted,
                truth);
    EXPECT_NEAR(predicted / truth, 1, 0.1) << masks;
  }
}

TEST(Until, StopsEarlyWhereItIsSureAndThenIsAsSureAsItSays) {
  constexpr int64_t kSize = 16, kRuns = 60;
  constexpr double kWanted = 0.1;
  LinearProbability target(0.8 * hills(kSize));
  const auto pixels = torch::ones({1, 3, kSize, kSize});
  std::vector<Tensor> maps;
  double masks = 0;
  for (uint64_t run = 0; run < kRuns; ++run) {
    const auto found = made("rise:masks=20000:cells=3:until=0.1", target, pixels, run);
    maps.push_back(found.maps[0]);
    masks += found.made[0].passes.forwards / kRuns;
    EXPECT_LT(found.made[0].passes.forwards, 20000);
  }
  const double truth = true_rank_error(torch::stack(maps));
  std::printf("until=%.2f: %.0f masks, measured rank error %.4f\n", kWanted, masks, truth);
  EXPECT_LT(truth, 1.15 * kWanted);
  EXPECT_GT(truth, 0.7 * kWanted) << "no more masks than needed";
}

TEST(Until, TakesAllMasksWhereThereIsNothingToRank) {
  HashTarget target(16);
  EXPECT_EQ(made("rise:masks=3000:until=0.1", target, wave_image(16)).made[0].passes.forwards, 3000);
}

TEST(Until, StopsTisToo) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  const auto all = made("tis:masks=2000", target, wave_image(16)).made[0].passes.forwards,
             loose = made("tis:masks=2000:until=0.29", target, wave_image(16)).made[0].passes.forwards,
             strict = made("tis:masks=2000:until=0.0001", target, wave_image(16)).made[0].passes.forwards;
  EXPECT_LE(loose, all);
  EXPECT_EQ(strict, all);
}

// ---- every one of them ----

TEST(Sampling, HasTheSameBitsInAnyBatchAndForAnyNumberOfThreads) {
  VitClassifier target(checks::tiny_vit(), checks::plain_info("tiny_vit", 16));
  auto pixels = torch::empty({3, 3, 16, 16});
  checks::fill_with_wave(pixels, 3, 0.5);
  pixels += 0.5;
  const auto classes = torch::tensor({0, 3, 1}, torch::kInt64);
  const std::vector<uint64_t> streams = {1, 2, 3};
  for (const std::string spec :
       {"rise:masks=100", "rise:masks=300:until=0.2", "occlusion", "tis:masks=40", "smoothgrad:samples=11"}) {
    const auto method = make_method(spec, {target});
    const auto together = method->attribute(pixels, classes, streams, Context()).maps;
    for (int64_t b = 0; b < 3; ++b)
      EXPECT_TRUE(torch::equal(
          together[b],
          method->attribute(pixels.narrow(0, b, 1), classes.narrow(0, b, 1), {&streams[b], 1}, Context())
              .maps[0]))
          << spec;
    if (spec.starts_with("rise") || spec == "occlusion") {
      set_threads(1);
      EXPECT_TRUE(torch::equal(together, method->attribute(pixels, classes, streams, Context()).maps))
          << spec;
      set_threads(0);
    }
  }
}

TEST(Sampling, ExplainsTorchScriptTargets) {
  const auto folder = checks::fresh_folder("methods_script");
  torch::jit::Module module("net");
  module.define(
      "def forward(self, x):\n"
      "  bright = x[:, :, 2:4, 4:6].mean([1, 2, 3])\n"
      "  return torch.stack([bright, torch.zeros_like(bright)], 1)\n");
  module.save(folder + "/m.pt");
  LoadOptions options;
  options.input_size = 8;
  const auto target = load_script_classifier(folder + "/m.pt", options, Context());
  const auto pixels = torch::ones({1, 3, 8, 8});
  for (const std::string spec : {"rise:masks=1000:cells=4", "occlusion:window=2:stride=2", "gradient",
                                 "smoothgrad:samples=4", "smoothgrad:samples=4:average=square"}) {
    const auto map = made(spec, *target, pixels).maps[0];
    const int64_t best = map.argmax().item<int64_t>(), y = best / 8, x = best % 8;
    EXPECT_TRUE(y >= 1 && y <= 4 && x >= 3 && x <= 6) << spec << " found (" << y << ", " << x << ")";
  }
}

TEST(SmoothGrad, AveragesAsAsked) {
  checks::LinearTarget target(4);
  const auto pixels = wave_image(4);
  const auto row = target.weights[0];
  const auto expect = [&](const std::string& spec, const Tensor& map) {
    EXPECT_TRUE(torch::allclose(made(spec, target, pixels).maps[0], map, 1e-5, 1e-6)) << spec;
  };
  expect("gradient:channels=signed", row.sum(0));
  expect("smoothgrad:channels=signed", row.sum(0));
  expect("smoothgrad:average=magnitude:channels=signed", row.abs().sum(0));
  expect("smoothgrad:average=square", row.square().amax(0));
}

}  // namespace
}  // namespace aha
