#include "aha/base/stats.h"

#include <gtest/gtest.h>

#include <cmath>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"

namespace aha {
namespace {

// k / 1000 for k = 0..1000: the share of a point is the point itself.
std::vector<double> even_resamples(double shift = 0) {
  std::vector<double> out;
  for (int k = 0; k <= 1000; ++k) out.push_back(k / 1000.0 + shift);
  return out;
}

TEST(Bootstrap, SymmetricValuesHaveThePercentileInterval) {
  const std::vector<double> values = {0, 0.25, 0.75, 1};
  const Interval found = bca_interval(values, even_resamples());
  EXPECT_DOUBLE_EQ(found.mean, 0.5);
  EXPECT_NEAR(found.low, 0.025, 6e-4);  // half a step of the resamples
  EXPECT_NEAR(found.high, 0.975, 6e-4);
}

// By hand: deviations -.5 -.5 -.5 1.5, sum of squares 3, of cubes 3, a = 3 / (6 * 3^1.5) = 0.096225;
// Phi(-1.959964 / 1.188597) = 0.04958, Phi(1.959964 / 0.811403) = 0.99215.
TEST(Bootstrap, SkewMovesBothEnds) {
  const std::vector<double> values = {0, 0, 0, 2};
  const Interval found = bca_interval(values, even_resamples());
  EXPECT_NEAR(found.low, 0.04958, 6e-4);
  EXPECT_NEAR(found.high, 0.99215, 6e-4);
}

// 60 % of the resampled means are below the mean: z0 = 0.253347; Phi(2 z0 - 1.959964) = 0.07306,
// Phi(2 z0 + 1.959964) = 0.99318 of resamples that begin at -0.1.
TEST(Bootstrap, BiasMovesBothEnds) {
  const std::vector<double> values = {0, 0.25, 0.75, 1};
  const Interval found = bca_interval(values, even_resamples(-0.1));
  EXPECT_NEAR(found.low, 0.07306 - 0.1, 1.5e-3);
  EXPECT_NEAR(found.high, 0.99318 - 0.1, 1.5e-3);
}

TEST(Bootstrap, ColumnsShareTheirResamplesWithAnyNumberOfThreads) {
  Rng rng(3);
  Columns columns(70, std::vector<double>(50));
  for (auto& column : columns)
    for (double& v : column) v = rng.normal();
  columns[1] = columns[0];
  for (double& v : columns[1]) v = 3 - 2 * v;
  set_threads(1);
  const auto alone = resampled_means({columns[69]}, 7, 100);
  set_threads(2);
  const auto all = resampled_means(columns, 7, 100);
  set_threads(0);
  EXPECT_EQ(alone[0], all[69]);
  for (size_t r = 0; r < 100; ++r) EXPECT_NEAR(all[1][r], 3 - 2 * all[0][r], 1e-12);
  EXPECT_NE(resampled_means({columns[0]}, 8, 100)[0], all[0]);
}

TEST(Bootstrap, EqualValuesAndSingleOnesHaveNoWidth) {
  for (const auto& values : {std::vector<double>(5, 0.1), std::vector<double>{0.1}}) {
    const Interval found = bootstrap(values);
    EXPECT_DOUBLE_EQ(found.mean, 0.1);
    EXPECT_EQ(found.low, found.mean);
    EXPECT_EQ(found.high, found.mean);
  }
  EXPECT_EQ(bootstrap(std::vector<double>()).mean, 0);
  EXPECT_THROW(bootstrap(Columns{{1, 2}, {1}}), Error);
}

// An interval of level 95 % misses the mean in about 5 % of the samples, of a skewed distribution too.
TEST(Bootstrap, CoversTheMeanOfASkewedDistribution) {
  int missed = 0;
  constexpr int kTrials = 400;
  for (int t = 0; t < kTrials; ++t) {
    Rng rng(11, static_cast<uint64_t>(t));
    std::vector<double> values(60);
    for (double& v : values) v = -std::log(rng.uniform());  // mean 1
    const Interval found = bootstrap(values, static_cast<uint64_t>(t), 500);
    missed += found.low > 1 || found.high < 1;
  }
  EXPECT_NEAR(missed / static_cast<double>(kTrials), 0.05, 0.03);
}

// 1, 2, 4: of 8 patterns of signs two reach 7 and four reach 5.
TEST(SignFlip, FewImagesAreCountedExactly) {
  EXPECT_DOUBLE_EQ(sign_flip_p({{1, 2, 4}})[0], 2 / 8.0);
  EXPECT_DOUBLE_EQ(sign_flip_p({{-1, 2, 4}})[0], 4 / 8.0);
  EXPECT_DOUBLE_EQ(sign_flip_p({{1, -1}})[0], 1);
  EXPECT_DOUBLE_EQ(sign_flip_p({{0, 0, 0}})[0], 1);
  EXPECT_DOUBLE_EQ(sign_flip_p({std::vector<double>(10, 0.3)})[0], 2 / 1024.0);
}

// The sum of n random signs is binomial: 20 ones of which 15 are positive have a sum of 10, and
// P(|S| >= 10) = 2 (15504 + 4845 + 1140 + 190 + 20 + 1) / 2^20 = 0.041389.
TEST(SignFlip, ManyImagesAreSampled) {
  std::vector<double> values(20, 1);
  std::fill(values.begin(), values.begin() + 5, -1);
  EXPECT_NEAR(sign_flip_p({values})[0], 0.041389, 0.006);
  // 40 equal ones: exactly 2^-39; the bound is above it and far below what 10,000 flips can show.
  const double p = sign_flip_p({std::vector<double>(40, 1)})[0];
  EXPECT_NEAR(p, 3.178 * std::erfc(std::sqrt(20.0)), 1e-3 * p);
  EXPECT_GT(p, std::pow(2, -39));
  EXPECT_EQ(sign_flip_p({values, std::vector<double>(20, 0.5)}, 3)[0], sign_flip_p({values}, 3)[0])
      << "a column that needs no flips changes nothing for the others";
  EXPECT_TRUE(sign_flip_p({}).empty());
}

// 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1: 0.04, 0.06, 0.06, then 0.04 that must not fall.
TEST(Holm, MultipliesAndNeverFalls) {
  const auto found = holm({0.03, 0.01, 0.04, 0.02});
  EXPECT_NEAR(found[1], 0.04, 1e-12);
  EXPECT_NEAR(found[3], 0.06, 1e-12);
  EXPECT_NEAR(found[0], 0.06, 1e-12);
  EXPECT_NEAR(found[2], 0.06, 1e-12);
  EXPECT_EQ(holm({0.9, 0.8}), (std::vector<double>{1, 1}));
}

TEST(PairedDifferences, AreThoseOfEachPair) {
  const Columns a = {{1, 2, 3}, {0, 5, 1}}, b = {{1, 1, 1}, {1, 1, 1}};
  const auto found = paired_differences(a, b);
  EXPECT_DOUBLE_EQ(found[0].difference.mean, 1);
  EXPECT_DOUBLE_EQ(found[0].win_rate, 2.5 / 3);
  EXPECT_DOUBLE_EQ(found[0].p_value, 0.5);  // 0, 1, 2: |S| = 3 in four of eight
  EXPECT_DOUBLE_EQ(found[1].win_rate, 1.5 / 3);
  EXPECT_THROW(paired_difference(a[0], std::vector<double>(2)), Error);
}

// The planning table of the evaluation's design: 0.0039 with a deviation of 0.05 needs about 1,290 images.
TEST(Detectable, IsThePlannedDifferenceAtThePlannedCount) {
  EXPECT_NEAR(detectable_difference(0.05, 1290), 0.0039, 2e-6);
  EXPECT_NEAR(detectable_difference(0.12, 7420), 0.0039, 4e-6);
  EXPECT_NEAR(detectable_difference(1, 1), 1.959964 + 0.841621, 1e-6);
  EXPECT_NEAR(detectable_difference(1, 4, 0.5), 1.959964 / 2, 1e-6);
}

TEST(KendallTau, CountsSwappedPairs) {
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {10, 20, 30}), 1);
  EXPECT_DOUBLE_EQ(kendall_tau({1, 2, 3}, {30, 20, 10}), -1);
  EXPECT_NEAR(kendall_tau({1, 2, 3}, {10, 30, 20}), 1.0 / 3, 1e-12);
}

TEST(Ranks, BeginAtOneForTheHighestAndShareTies) {
  EXPECT_EQ(ranks_from_best(std::vector<double>{0.2, 0.9, 0.5, 0.5}), (std::vector<double>{4, 1, 2.5, 2.5}));
}

// The paper's table, in thousands: 4.5 h of training with 16 perturbation steps, 2 h with 8. One entry
// differs in its last digit (it prints 6.25).
TEST(BreakEven, ReproducesThePublishedTable) {
  const double slower[] = {0.860, 1.167, 13.645};  // ViT-CX, TIS, MDA: seconds a map
  struct {
    double training, own, thousands[3];
  } const rows[] = {{16200, 0.016, {19.19, 14.07, 1.19}},
                    {16200, 0.547, {51.76, 26.13, 1.24}},
                    {7200, 0.016, {8.53, 6.26, 0.53}},
                    {7200, 0.547, {23.00, 11.61, 0.55}}};
  for (const auto& row : rows)
    for (int m = 0; m < 3; ++m)
      EXPECT_NEAR(break_even(row.training, slower[m], row.own) / 1000, row.thousands[m], 0.00501)
          << row.training << " " << row.own << " " << slower[m];
  EXPECT_TRUE(std::isinf(break_even(16200, 0.016, 0.016)));
  EXPECT_TRUE(std::isinf(break_even(16200, 0.006, 0.016)));
}

}  // namespace
}  // namespace aha
