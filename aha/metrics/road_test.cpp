#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"
#include "aha/metrics/linear_imputation.h"
#include "aha/testing/metric_call.h"

namespace aha {
namespace {

// Every equation written out, solved densely.
std::vector<double> imputed_plainly(int64_t H, int64_t W, const std::vector<uint8_t>& missing,
                                    const std::vector<float>& image) {
  Tensor matrix = torch::eye(H * W, torch::kFloat64), right = torch::zeros({H * W, 1}, torch::kFloat64);
  for (int64_t i = 0; i < H * W; ++i) {
    if (!missing[i]) {
      right[i][0] = image[i];
      continue;
    }
    for (int64_t dy = -1; dy <= 1; ++dy)
      for (int64_t dx = -1; dx <= 1; ++dx) {
        const int64_t y = i / W + dy, x = i % W + dx;
        const double weight = dx && dy ? 1.0 / 12 : 1.0 / 6;
        if ((!dx && !dy)) continue;
        if (y < 0 || y >= H || x < 0 || x >= W)
          matrix[i][i] -= weight;
        else
          matrix[i][y * W + x] -= weight;
      }
  }
  const Tensor values = torch::linalg_solve(matrix, right).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + H * W};
}

TEST(LinearImputation, ReproducesTheWorkedExample) {
  std::vector<float> image(16);
  for (int i = 0; i < 16; ++i) image[i] = static_cast<float>(i);
  std::vector<uint8_t> missing(16);
  for (const int i : {0, 5, 6, 15}) missing[i] = 1;
  std::vector<float> found = image;
  impute(imputation_grid(4, 4), missing, found);
  EXPECT_NEAR(found[0], 3.052326, 1e-5);
  EXPECT_NEAR(found[5], 5.261628, 1e-5);
  EXPECT_NEAR(found[6], 6.043605, 1e-5);
  EXPECT_NEAR(found[15], 12, 1e-5);
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(missing[i] || found[i] == image[i]);
}

TEST(LinearImputation, EqualsThePlainEquationsForAnyShapeAndShare) {
  Rng rng(1);
  for (int round = 0; round < 40; ++round) {
    const int64_t H = 1 + static_cast<int64_t>(rng.below(13)), W = 2 + static_cast<int64_t>(rng.below(13));
    std::vector<float> image(static_cast<size_t>(3 * H * W));
    std::vector<uint8_t> missing(static_cast<size_t>(H * W));
    for (float& value : image) value = static_cast<float>(rng.uniform());
    const double share = rng.uniform();
    for (auto& one : missing) one = rng.uniform() < share;
    missing[rng.below(missing.size())] = 0;
    std::vector<float> found = image;
    impute(imputation_grid(H, W), missing, found);
    for (int64_t c = 0; c < 3; ++c) {
      const auto expected =
          imputed_plainly(H, W, missing, {image.begin() + c * H * W, image.begin() + (c + 1) * H * W});
      for (int64_t i = 0; i < H * W; ++i)
        ASSERT_NEAR(found[c * H * W + i], expected[i], 1e-6) << H << " x " << W;
    }
  }
}

TEST(LinearImputation, TheOrderOfTheGridHasEveryPixelOnce) {
  auto order = imputation_grid(37, 50).order;
  std::sort(order.begin(), order.end());
  ASSERT_EQ(order.size(), 37u * 50u);
  for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], static_cast<int32_t>(i));
}

TEST(LinearImputation, RefusesAnImageOfWhichNothingIsKnown) {
  std::vector<float> image(4);
  EXPECT_THROW(impute(imputation_grid(2, 2), std::vector<uint8_t>{1, 1, 1, 1}, image), Error);
  EXPECT_THROW(impute(imputation_grid(2, 2), std::vector<uint8_t>{1, 0, 1}, image), Error);
}

// Bright where it matters: the upper half of the image.
Tensor half_bright(int64_t size) {
  Tensor pixels = torch::full({1, 3, size, size}, 0.1f);
  pixels.slice(2, 0, size / 2).fill_(0.9f);
  return pixels;
}

TEST(Road, WithoutNoiseIsTheMeanOverTheLevels) {
  checks::MeanToy target(8);
  Tensor pixels = torch::rand({1, 3, 8, 8}), map = torch::rand({1, 8, 8});
  const auto images = checks::metric_images_of(target, pixels, torch::zeros({1}, torch::kInt64));
  const auto found = checks::measured("road:noise=0:levels=0.25,0.5", target, images, map)[0].values;
  const Tensor order = hard_order(map, TieRule::kJitter, Context().seed, images.streams[0]).order[0];
  for (const bool most : {true, false}) {
    double expected = 0;
    for (const int64_t count : {16, 32}) {
      std::vector<uint8_t> missing(64);
      for (int64_t i = 0; i < count; ++i) missing[order[most ? i : 63 - i].item<int64_t>()] = 1;
      const Tensor first = pixels[0][0].contiguous();
      const auto values =
          imputed_plainly(8, 8, missing, {first.data_ptr<float>(), first.data_ptr<float>() + 64});
      expected += std::accumulate(values.begin(), values.end(), 0.0) / 64 / 2;
    }
    EXPECT_NEAR(found.at(most ? "road-morf" : "road-lerf"), expected, 1e-6);
  }
}

TEST(Road, ARightMapIsBetterThanItsOppositeAndHitsCount) {
  checks::MeanToy target(16);
  const Tensor pixels = half_bright(16), map = pixels.select(1, 0).contiguous();
  const auto images = checks::metric_images_of(target, pixels, torch::zeros({1}, torch::kInt64));
  const auto right = checks::measured("road", target, images, map)[0].values,
             wrong = checks::measured("road", target, images, -map)[0].values;
  EXPECT_GT(right.at("road-lerf") - right.at("road-morf"), 0.2);
  EXPECT_LT(wrong.at("road-lerf") - wrong.at("road-morf"), -0.2);
  EXPECT_NEAR(right.at("road-morf-hits") * 9, std::round(right.at("road-morf-hits") * 9), 1e-9);
  EXPECT_GT(right.at("road-lerf-hits"), right.at("road-morf-hits"));
}

TEST(Road, ThreadsAndBatchesChangeNothingAndTheSeedDoes) {
  checks::MeanToy target(12);
  const Tensor pixels = torch::rand({3, 3, 12, 12}), maps = torch::rand({3, 12, 12});
  const auto images = checks::metric_images_of(target, pixels, torch::zeros({3}, torch::kInt64));
  Context one, many, other;
  one.batch_size = 1;
  many.batch_size = 64;
  other.seed = 5;
  set_threads(1);
  const auto a = checks::measured("road", target, images, maps, one);
  set_threads(2);
  const auto b = checks::measured("road", target, images, maps, many),
             c = checks::measured("road", target, images, maps, other);
  set_threads(0);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a[i].values, b[i].values);
    EXPECT_NE(a[i].values.at("road-morf"), c[i].values.at("road-morf"));
  }
}

}  // namespace
}  // namespace aha
