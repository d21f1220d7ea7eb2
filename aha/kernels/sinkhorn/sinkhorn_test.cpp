#include "aha/kernels/sinkhorn/sinkhorn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "aha/base/error.h"
#include "aha/base/rng.h"
#include "aha/kernels/sinkhorn/gumbel.h"
#include "aha/kernels/sinkhorn/sinkhorn_state.h"
#include "aha/testing/sinkhorn_ref.h"

namespace aha {
namespace {

struct Case {
  std::vector<float> scores, mask_grad;
  std::vector<int32_t> ks;
  SinkhornProblem problem;
};

Case make_case(int K, double range, double tau, double noise, int S = 16, int iterations = 30) {
  Case c;
  Rng rng(17, stream_id({uint64_t(K), uint64_t(S)}));
  for (int i = 0; i < K; ++i) c.scores.push_back(static_cast<float>(range * rng.uniform()));
  for (int s = 1; s <= S; ++s) c.ks.push_back(std::max(1, static_cast<int>(std::lround(double(K) * s / S))));
  for (int n = 0; n < S * K; ++n) c.mask_grad.push_back(static_cast<float>(rng.normal()));
  c.problem = {c.scores, c.ks, tau, iterations, noise, 5, 9};
  return c;
}

struct Outcome {
  SinkhornReport report;
  std::vector<float> masks, grad;
};

Outcome run(const Case& c, SinkhornPath path, SinkhornWorkspace& workspace) {
  Outcome out;
  out.masks.resize(c.ks.size() * c.scores.size());
  out.grad.resize(c.scores.size());
  out.report = sinkhorn_forward(c.problem, path, out.masks, workspace);
  sinkhorn_backward(c.mask_grad, out.grad, workspace);
  return out;
}

Outcome run(const Case& c, SinkhornPath path = SinkhornPath::kAuto, const SinkhornLoops* loops = nullptr) {
  SinkhornWorkspace workspace;
  workspace.state().loops = loops;
  return run(c, path, workspace);
}

double relative_error(const std::vector<float>& x, const std::vector<double>& y) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference += (x[i] - y[i]) * (x[i] - y[i]);
    size += y[i] * y[i];
  }
  return std::sqrt(difference / size);
}

std::vector<const SinkhornLoops*> loops_present() {
  std::vector<const SinkhornLoops*> present;
  for (const SinkhornLoops* loops : {&kSinkhornPortable, &kSinkhornAvx2, &kSinkhornAvx512})
    if (loops->isa <= best_isa()) present.push_back(loops);
  return present;
}

void expect_reference(const Case& c, SinkhornPath path, double tolerance) {
  const SinkhornReference reference = sinkhorn_ref(c.problem, c.mask_grad);
  for (const SinkhornLoops* loops : loops_present()) {
    const Outcome out = run(c, path, loops);
    SCOPED_TRACE(fmt::format("K {} tau {} noise {} on {}: {} rank {} regauges {} residual {:.2g}",
                             c.scores.size(), c.problem.tau, c.problem.noise, name_of(loops->isa),
                             out.report.path == SinkhornPath::kDense ? "dense" : "low-rank", out.report.rank,
                             out.report.regauges, out.report.residual));
    EXPECT_LT(relative_error(out.masks, reference.masks), tolerance);
    EXPECT_LT(relative_error(out.grad, reference.score_grad), tolerance);
  }
}

class Sizes : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sinkhorn, Sizes, testing::Values(49, 196, 784), testing::PrintToStringParamName());

TEST_P(Sizes, DenseMasksAndGradientsEqualTheDoubleReference) {
  for (double tau : {1.0, 0.5, 0.1})
    for (double noise : {0.0, 1.0})
      expect_reference(make_case(GetParam(), 1, tau, noise), SinkhornPath::kDense, 1e-5);
}

TEST_P(Sizes, LowRankMasksAndGradientsEqualTheDoubleReference) {
  for (double tau : {1.0, 0.5, 0.1})
    expect_reference(make_case(GetParam(), 1, tau, 0), SinkhornPath::kLowRank, 1e-5);
}

TEST(Sinkhorn, WideScoresEqualTheDoubleReference) {
  for (double range : {5.0, 20.0, 60.0, 100.0, 1000.0})
    for (double noise : {0.0, 1.0})
      for (SinkhornPath path : {SinkhornPath::kDense, SinkhornPath::kAuto})
        expect_reference(make_case(196, range, 1, noise), path, 1e-5);
}

TEST(Sinkhorn, SmallTemperaturesEqualTheDoubleReference) {
  for (double noise : {0.0, 0.01, 1.0})
    expect_reference(make_case(196, 1, 0.01, noise), SinkhornPath::kAuto, 1e-5);
  // Logits of 1e4 and noise of 1e3: nearly all masks are 0 or 1 to float32, and the gradient is what is left.
  for (double noise : {0.0, 1.0})
    expect_reference(make_case(49, 100, 0.01, noise), SinkhornPath::kAuto, 1e-4);
}

TEST(Sinkhorn, RegaugesWhereFloatsWouldOverflow) {
  const Outcome out = run(make_case(196, 1000, 1, 0));
  EXPECT_GE(out.report.regauges, 1);
}

TEST(Sinkhorn, UnevenScoresEqualTheDoubleReference) {
  for (int kind = 0; kind < 5; ++kind) {
    for (double tau : {1.0, 0.05}) {
      Case c = make_case(100, 1, tau, 0, 8);
      Rng rng(3, kind);
      for (size_t i = 0; i < c.scores.size(); ++i) {
        const double normal = rng.normal();
        const double values[] = {std::exp(normal), double(normal > 0.5), i == 7 ? 5.0 : 0.1 * normal,
                                 std::max(0.0, normal), 0.25};
        c.scores[i] = static_cast<float>(values[kind]);
      }
      expect_reference(c, SinkhornPath::kAuto, 1e-5);
    }
  }
}

TEST(Sinkhorn, SmallProblemsEqualTheDoubleReference) {
  for (int K : {2, 3, 7, 16, 17, 33})
    for (double noise : {0.0, 0.5})
      expect_reference(make_case(K, 2, 0.7, noise, 3, 5), SinkhornPath::kAuto, 1e-5);
  const Case one = make_case(1, 1, 1, 1, 1);
  const Outcome out = run(one);
  EXPECT_EQ(out.masks[0], 1.0f);
  EXPECT_EQ(out.grad[0], 0.0f);
}

TEST(Sinkhorn, RowsAndColumnsSumToOneWithinTheResidual) {
  for (SinkhornPath path : {SinkhornPath::kDense, SinkhornPath::kLowRank}) {
    for (double tau : {1.0, 0.02}) {
      const int K = 100;
      Case c = make_case(K, 1, tau, 0, K);  // k = 1..K: differences of masks are the columns of the plan
      const Outcome out = run(c, path);
      for (int j = 0; j < K; ++j) {
        double sum = 0;
        for (int i = 0; i < K; ++i) sum += out.masks[j * K + i] - (j ? out.masks[(j - 1) * K + i] : 0.0);
        // K sums of two masks, each rounded to 2^-24.
        EXPECT_NEAR(sum, 1, out.report.residual + 2 * K * 0x1p-24);
      }
      for (int i = 0; i < K; ++i) EXPECT_NEAR(out.masks[(K - 1) * K + i], 1, 1e-6);
    }
  }
}

TEST(Sinkhorn, MasksStayInTheUnitIntervalAndGrowWithK) {
  for (double range : {0.1, 10.0, 300.0}) {
    for (double noise : {0.0, 1.0}) {
      const Case c = make_case(64, range, 0.3, noise);
      const Outcome out = run(c);
      for (size_t s = 0; s < c.ks.size(); ++s) {
        for (int i = 0; i < 64; ++i) {
          const float mask = out.masks[s * 64 + i];
          EXPECT_TRUE(mask >= 0 && mask <= 1) << mask;
          EXPECT_GE(mask, s > 0 ? out.masks[(s - 1) * 64 + i] - 1e-6f : 0);
        }
      }
    }
  }
}

TEST(Sinkhorn, LowTemperatureGivesTheHardOrder) {
  const int K = 60;
  Case c = make_case(K, 1, 1e-5, 0, K);
  const auto order = Rng(4).permutation(K);  // order[r] has rank r
  for (int r = 0; r < K; ++r) c.scores[order[r]] = static_cast<float>(1 - r / double(K));
  const Outcome out = run(c);
  for (int k = 1; k <= K; ++k)
    for (int r = 0; r < K; ++r) EXPECT_NEAR(out.masks[(k - 1) * K + order[r]], r < k ? 1 : 0, 1e-6);
}

TEST(Sinkhorn, ShiftingAllScoresChangesNothing) {
  Case c = make_case(49, 1, 0.5, 0), shifted = c;
  for (float& score : shifted.scores) score += 4;
  shifted.problem.scores = shifted.scores;
  const Outcome a = run(c), b = run(shifted);
  // Scores near 4 are rounded to 2^-22; a mask moves by at most 2 |p| / tau times that.
  for (size_t n = 0; n < a.masks.size(); ++n) EXPECT_NEAR(a.masks[n], b.masks[n], 4 * 0x1p-22);
}

TEST(Sinkhorn, BackwardCanBeRepeatedAlsoAcrossGauges) {
  const Case c = make_case(96, 1000, 1, 1);
  SinkhornWorkspace workspace;
  const Outcome first = run(c, SinkhornPath::kDense, workspace);
  EXPECT_GE(first.report.regauges, 1);
  std::vector<float> again(c.scores.size());
  sinkhorn_backward(c.mask_grad, again, workspace);
  EXPECT_EQ(again, first.grad);
}

TEST(Sinkhorn, AWorkspaceServesOneProblemAfterAnother) {
  SinkhornWorkspace workspace;
  for (int K : {100, 33, 49, 100, 20}) {
    for (double noise : {1.0, 0.0}) {
      const Case c = make_case(K, 1, 1, noise);
      const Outcome reused = run(c, SinkhornPath::kAuto, workspace), fresh = run(c);
      EXPECT_EQ(reused.masks, fresh.masks);
      EXPECT_EQ(reused.grad, fresh.grad);
    }
  }
}

TEST(Sinkhorn, TheReferenceGradientEqualsFiniteDifferences) {
  for (double noise : {0.0, 1.0}) {
    Case c = make_case(12, 1, 0.3, noise, 4);
    const std::vector<double> grad = sinkhorn_ref(c.problem, c.mask_grad).score_grad;
    const auto loss = [&] {
      const auto masks = sinkhorn_ref(c.problem).masks;
      return std::inner_product(masks.begin(), masks.end(), c.mask_grad.begin(), 0.0);
    };
    for (size_t i = 0; i < c.scores.size(); ++i) {
      const float score = c.scores[i], step = 0x1p-9f;
      c.scores[i] = score + step;
      const double up = loss(), step_up = c.scores[i] - double(score);
      c.scores[i] = score - step;
      const double down = loss(), step_down = double(score) - c.scores[i];
      c.scores[i] = score;
      EXPECT_NEAR((up - down) / (step_up + step_down), grad[i], 1e-3 * (1 + std::abs(grad[i])));
    }
  }
}

TEST(Sinkhorn, RefusesWhatItCannotDo) {
  std::vector<float> masks(16 * 49);
  SinkhornWorkspace workspace;
  Case c = make_case(49, 1, 1, 0);
  const auto refuses = [&](const SinkhornProblem& problem, SinkhornPath path = SinkhornPath::kAuto) {
    EXPECT_THROW(sinkhorn_forward(problem, path, masks, workspace), Error);
  };
  SinkhornProblem bad = c.problem;
  bad.tau = 0;
  refuses(bad);
  bad = c.problem;
  bad.noise = NAN;
  refuses(bad);
  bad.noise = 1;
  refuses(bad, SinkhornPath::kLowRank);
  std::vector<int32_t> ks(16, 50);
  bad = c.problem;
  bad.ks = ks;
  refuses(bad);
  c.scores[3] = INFINITY;
  refuses(c.problem);
}

TEST(Gumbel, EveryInstructionSetEqualsTheGeneratorOneByOne) {
  for (const SinkhornLoops* loops : loops_present()) {
    for (int K : {5, 49, 200}) {
      std::vector<float> row(gumbel_row_size(K));
      for (int i : {0, 3, K - 1}) {
        loops->gumbel_row(7, 11, K, i, row.data());
        for (int j = 0; j < K; ++j) {
          const double expected = gumbel_ref(7, 11, K, i, j);
          // The inner logarithm's relative error of a few 2^-24 is an absolute one of the outer.
          EXPECT_NEAR(row[j], expected, 8 * 0x1p-24 * (1 + std::abs(expected)));
        }
      }
    }
  }
}

TEST(Gumbel, HasTheMeanAndVarianceOfTheDistribution) {
  const int K = 512;
  std::vector<float> noise(K * K);
  gumbel_rows(1, 2, K, 0, noise);
  const double n = K * K;
  double mean = 0, variance = 0;
  for (float x : noise) mean += x / n;
  for (float x : noise) variance += (x - mean) * (x - mean) / n;
  EXPECT_NEAR(mean, 0.5772, 4 * std::sqrt(1.645 / n));
  EXPECT_NEAR(variance, 1.6449, 4 * std::sqrt(11.9 / n));  // fourth central moment 14.6
}

}  // namespace
}  // namespace aha
