#include "aha/ranking/soft_sort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

double relative_error(const Tensor& a, const Tensor& b) {
  return ((a.to(torch::kFloat64) - b.to(torch::kFloat64)).norm() / b.to(torch::kFloat64).norm())
      .item<double>();
}

struct Differentiated {
  SoftMasks soft;
  Tensor grad;
};

Differentiated differentiate(const Tensor& scores, const Tensor& ks, const SoftSortOptions& options,
                             const Tensor& mask_grad) {
  Differentiated out;
  const Tensor x = scores.detach().clone().set_requires_grad(true);
  out.soft = soft_top_k(x, ks, options, {3, 100}, Context{});
  (out.soft.masks * mask_grad.to(x.scalar_type())).sum().backward();
  out.grad = x.grad();
  return out;
}

class Sizes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(SoftSort, Sizes, ::testing::Values(49, 196, 784),
                         ::testing::PrintToStringParamName());

TEST_P(Sizes, MasksAndGradientsEqualTheAutogradReferenceInDouble) {
  const int64_t K = GetParam(), B = K > 500 ? 1 : 3;
  torch::manual_seed(K);
  const Tensor scores = torch::rand({B, K}), mask_grad = torch::randn({B, 16, K});
  const Tensor ks = torch::tensor(perturbation_counts(K, 16));
  for (double tau : {1.0, 0.5, 0.1}) {
    for (double noise : {0.0, 1.0}) {
      SoftSortOptions options{tau, 30, noise, "reference"};
      const auto exact = differentiate(scores.to(torch::kFloat64), ks, options, mask_grad);
      for (const char* path : {"auto", "dense"}) {
        options.path = path;
        const auto fused = differentiate(scores, ks, options, mask_grad);
        SCOPED_TRACE(fmt::format("tau {} noise {} path {}", tau, noise, fused.soft.path));
        EXPECT_EQ(fused.soft.path, noise > 0 || options.path == "dense" ? "dense" : "low-rank");
        EXPECT_LT(relative_error(fused.soft.masks, exact.soft.masks), 1e-5);
        EXPECT_LT(relative_error(fused.grad, exact.grad), 1e-5);
        // Both see the same plan, but float32 column sums of K terms are rounded.
        EXPECT_LT((fused.soft.residual - exact.soft.residual).abs().max().item<double>(),
                  K * 0x1p-24 + 1e-4 * exact.soft.residual.max().item<double>());
      }
    }
  }
}

TEST(SoftSort, TheReferenceGradientEqualsFiniteDifferences) {
  torch::manual_seed(1);
  const Tensor weight = torch::randn({2, 3, 10}, torch::kFloat64),
               scores = torch::rand({2, 10}, torch::kFloat64);
  for (double noise : {0.0, 1.0}) {
    const SoftSortOptions options{0.3, 30, noise, "reference"};
    const auto loss = [&](const Tensor& x) {
      return (soft_top_k(x, torch::tensor({2, 5, 9}, torch::kInt64), options, {}, Context{}).masks * weight)
          .sum();
    };
    EXPECT_LT(checks::gradient_error(loss, scores), 1e-6);
  }
}

TEST(SoftSort, EveryImageMayHaveItsOwnSteps) {
  torch::manual_seed(2);
  const Tensor scores = torch::rand({2, 30}), ks = torch::tensor({{1, 7, 30}, {4, 4, 9}}, torch::kInt64);
  const auto both = soft_top_k(scores, ks, {}, {}, Context{});
  for (int64_t b = 0; b < 2; ++b) {
    const auto one = soft_top_k(scores.narrow(0, b, 1), ks[b], {}, {}, Context{});
    EXPECT_TRUE(torch::equal(both.masks[b], one.masks[0]));
  }
  EXPECT_TRUE(torch::equal(both.masks[1][0], both.masks[1][1]));
}

TEST(SoftSort, NoThreadCountChangesAResultAndEveryImageHasItsOwnNoise) {
  const Tensor scores = torch::zeros({5, 40}), ks = torch::tensor({10, 20}, torch::kInt64);
  const SoftSortOptions options{1, 30, 1, "auto"};
  Context context;
  context.seed = 7;
  set_threads(1);
  const Tensor one = soft_top_k(scores, ks, options, {2, 10}, context).masks;
  set_threads(4);
  const Tensor four = soft_top_k(scores, ks, options, {2, 10}, context).masks;
  set_threads(0);
  EXPECT_TRUE(torch::equal(one, four));
  EXPECT_FALSE(torch::equal(one[0], one[1]));
  EXPECT_TRUE(
      torch::equal(one[3], soft_top_k(scores.narrow(0, 0, 1), ks, options, {2, 13}, context).masks[0]));
  EXPECT_FALSE(torch::equal(one, soft_top_k(scores, ks, options, {3, 10}, context).masks));
}

TEST(SoftSort, GradientsAreTheSameWithAndWithoutKeepingTheGraph) {
  torch::manual_seed(3);
  const Tensor x = torch::rand({2, 64}).set_requires_grad(true);
  const Tensor loss =
      soft_top_k(x, torch::tensor({8, 32}, torch::kInt64), {}, {}, Context{}).masks.square().sum();
  const Tensor first = torch::autograd::grad({loss}, {x}, {}, true)[0];
  EXPECT_TRUE(torch::equal(first, torch::autograd::grad({loss}, {x})[0]));
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(soft_top_k(x, torch::tensor({8}, torch::kInt64), {}, {}, Context{}).masks.requires_grad());
}

TEST(SoftSort, SaysWhatIsWrong) {
  const auto message = [](const Tensor& scores, const Tensor& ks,
                          const std::string& path = "auto") -> std::string {
    try {
      soft_top_k(scores, ks, {1, 30, 0, path}, {}, Context{});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const Tensor scores = torch::rand({1, 8}), ks = torch::tensor({1, 8}, torch::kInt64);
  EXPECT_THAT(message(scores, torch::tensor({1, 9}, torch::kInt64)),
              ::testing::HasSubstr("expected 1..8, found 1..9"));
  EXPECT_THAT(message(scores, torch::tensor({3, 2}, torch::kInt64)), ::testing::HasSubstr("ascending"));
  EXPECT_THAT(message(scores, ks, "dence"), ::testing::HasSubstr("did you mean 'dense'"));
  EXPECT_THAT(message(scores[0], ks), ::testing::HasSubstr("scores: expected shape"));
  EXPECT_THAT(message(scores / 0, ks), ::testing::HasSubstr("finite"));
}

TEST(PerturbationSteps, AreTheMiddlesOfEqualStrataOrRandomPlacesInThem) {
  EXPECT_EQ(perturbation_counts(8, 4), (std::vector<int64_t>{2, 4, 6, 8}));
  EXPECT_EQ(perturbation_counts(100, 4), (std::vector<int64_t>{13, 38, 63, 88}));
  Rng rng(1);
  double sum = 0;
  const int trials = 4000;
  for (int n = 0; n < trials; ++n) {
    const auto steps = perturbation_counts(100, 4, &rng);
    for (int s = 0; s < 4; ++s) {
      EXPECT_GE(steps[s], 25 * s + 1);
      EXPECT_LE(steps[s], 25 * s + 25);
      sum += steps[s];
    }
  }
  EXPECT_NEAR(sum / (4 * trials), 50.5,
              4 * 7.2 / std::sqrt(4.0 * trials));  // as the mean over all k; 7.2 = sd of 1..25
}

}  // namespace
}  // namespace aha
