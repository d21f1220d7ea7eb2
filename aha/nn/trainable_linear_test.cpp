#include "aha/nn/trainable_linear.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/sets/sets_under_test.h"

namespace aha {
namespace {

std::span<const float> span_of(const Tensor& t) {
  return {t.data_ptr<float>(), static_cast<size_t>(t.numel())};
}

// Each element of found = a b (+ bias) against float64. Roundings of operands are independent: they leave the
// root of the sum of squares of the products, times what one product has; the sum itself is float32.
::testing::AssertionResult is_product(const Tensor& found, const Tensor& a, const Tensor& b, Format format,
                                      const Tensor& bias = torch::zeros({1}, torch::kFloat64)) {
  constexpr double kFewTimes = 6;
  const Tensor spread = torch::mm(a.square(), b.square()).sqrt();
  const Tensor norms = torch::outer(a.norm(2, 1), b.norm(2, 0)) + bias.abs();
  const Tensor bound = kFewTimes * checks::rounded_product_deviation(format) * spread +
                       checks::sum_bound(a.size(1) + 1, 1.0, checks::product_epsilon(format)) * norms;
  const Tensor expected = (torch::mm(a, b) + bias).to(torch::kFloat32).contiguous();
  const Tensor plain = found.reshape(expected.sizes()).contiguous();
  const Tensor flat = bound.flatten().contiguous();
  return checks::all_within(span_of(plain), span_of(expected),
                            [&](size_t i) { return flat.data_ptr<double>()[i]; });
}

struct LinearCase {
  const char* name;
  std::vector<int64_t> rows;
  int64_t K, N;
  bool bias, columns_first;  // x comes as a transposed map, as a decoder has it
};
const LinearCase kLinearCases[] = {{"one row", {1}, 32, 32, true, false},
                                   {"tokens of images", {3, 17}, 64, 96, true, false},
                                   {"maps", {2, 35}, 96, 32, false, true},
                                   {"chunks of 64 rows and a rest", {461}, 32, 64, true, false}};

struct Problem {
  Tensor x, weight, bias, upstream;
};

Problem problem_of(const LinearCase& c) {
  torch::manual_seed(5);
  auto sizes = c.rows;
  sizes.push_back(c.K);
  Tensor x = torch::randn(sizes);
  if (c.columns_first) x = x.transpose(1, 2).contiguous().transpose(1, 2);
  sizes.back() = c.N;
  return {x.requires_grad_(),
          (torch::randn({c.N, c.K}) / std::sqrt(static_cast<double>(c.K))).requires_grad_(),
          c.bias ? torch::randn({c.N}).requires_grad_() : Tensor(), torch::randn(sizes)};
}

Tensor rows64(const Tensor& t) {
  return t.detach().to(torch::kFloat64).reshape({-1, t.size(-1)});
}

class TrainableLinearOn : public ::testing::TestWithParam<const KernelSet*> {};

TEST_P(TrainableLinearOn, OutputAndGradientsAreTheThreeProducts) {
  const Format format = GetParam()->format;
  for (const LinearCase& c : kLinearCases) {
    SCOPED_TRACE(c.name);
    const Problem p = problem_of(c);
    const Tensor y = trainable_linear(*GetParam(), p.x, p.weight, p.bias);
    ASSERT_EQ(y.sizes(), p.upstream.sizes());
    y.backward(p.upstream);
    const Tensor x = rows64(p.x), w = rows64(p.weight), dy = rows64(p.upstream);
    EXPECT_TRUE(is_product(y.detach(), x, w.t(), format,
                           c.bias ? rows64(p.bias) : torch::zeros({1}, torch::kFloat64)));
    EXPECT_TRUE(is_product(p.x.grad(), dy, w, format)) << "x";
    EXPECT_TRUE(is_product(p.weight.grad(), dy.t(), x, format)) << "weight";
    if (c.bias) {
      const Tensor ones = torch::ones({dy.size(0), 1}, torch::kFloat64);
      EXPECT_TRUE(is_product(p.bias.grad(), dy.t(), ones, format)) << "bias";
    }
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::equal(trainable_linear(*GetParam(), p.x, p.weight, p.bias), y))
        << "with and without a gradient";
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, TrainableLinearOn, ::testing::ValuesIn(checks::sets_to_test()),
                         checks::set_name);

// The formulas above, as libtorch derives them.
TEST(TrainableLinear, GradientsAreThoseOfLibtorch) {
  const Problem p = problem_of(kLinearCases[1]);
  const std::vector<Tensor> points = {p.x, p.weight, p.bias};
  const auto gradients = [&](const Tensor& y) {
    return torch::autograd::grad({y}, points, {p.upstream.to(y.scalar_type())});
  };
  const auto found = gradients(trainable_linear(reference_kernels(Format::kF32), p.x, p.weight, p.bias));
  const auto expected = gradients(
      torch::linear(p.x.to(torch::kFloat64), p.weight.to(torch::kFloat64), p.bias.to(torch::kFloat64)));
  for (size_t i = 0; i < points.size(); ++i)
    EXPECT_LT((found[i] - expected[i]).norm().item<double>(),
              4 * checks::kF32Epsilon * expected[i].norm().item<double>())
        << i;
}

TEST(TrainableLinear, AnyNumberOfThreadsGivesTheSameBits) {
  const KernelSet& kernels = best_kernel_set(Precision::kBf16);
  // The last has more chunks than there are partial sums.
  const int64_t most = kernels.isa == Isa::kReference ? 600 : 20000;
  for (const int64_t rows : {int64_t{33}, int64_t{461}, most}) {
    const Problem p = problem_of({"", {rows}, 64, 32, true, false});
    const auto run = [&](int threads) {
      set_threads(threads);
      const Tensor y = trainable_linear(kernels, p.x, p.weight, p.bias);
      auto results = torch::autograd::grad({y}, {p.x, p.weight, p.bias}, {p.upstream});
      results.push_back(y.detach());
      return results;
    };
    const auto one = run(1);
    for (const int threads : {2, 3}) {
      const auto many = run(threads);
      for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(torch::equal(many[i], one[i])) << rows << ", " << i;
    }
  }
  set_threads(0);
}

TEST(TrainableLinear, AnInputThatDoesNotLearnLeavesTheOthersGradientsAlone) {
  const Problem p = problem_of(kLinearCases[1]);
  const KernelSet& kernels = best_kernel_set(Precision::kF32);
  const auto all = torch::autograd::grad({trainable_linear(kernels, p.x, p.weight, p.bias)},
                                         {p.x, p.weight, p.bias}, {p.upstream});
  const auto weights = torch::autograd::grad({trainable_linear(kernels, p.x.detach(), p.weight, p.bias)},
                                             {p.weight, p.bias}, {p.upstream});
  EXPECT_TRUE(torch::equal(weights[0], all[1]));
  EXPECT_TRUE(torch::equal(weights[1], all[2]));
  const Tensor frozen = trainable_linear(kernels, p.x, p.weight.detach(), p.bias.detach());
  EXPECT_TRUE(torch::equal(torch::autograd::grad({frozen}, {p.x}, {p.upstream})[0], all[0]));
  EXPECT_FALSE(trainable_linear(kernels, p.x.detach(), p.weight.detach()).requires_grad());
}

TEST(TrainableLinear, AKeptGraphGivesTheSameGradientAgain) {
  const Problem p = problem_of(kLinearCases[1]), other = problem_of(kLinearCases[3]);
  const KernelSet& kernels = best_kernel_set(Precision::kF32);
  const Tensor y = trainable_linear(kernels, p.x, p.weight, p.bias).square().sum();
  const auto first = torch::autograd::grad({y}, {p.x, p.weight}, {}, true);
  trainable_linear(kernels, other.x, other.weight).sum().backward();
  const auto second = torch::autograd::grad({y}, {p.x, p.weight});
  EXPECT_TRUE(torch::equal(second[0], first[0]));
  EXPECT_TRUE(torch::equal(second[1], first[1]));
}

TEST(TrainableLinear, RefusesWhatItCannotMultiply) {
  const KernelSet& kernels = best_kernel_set(Precision::kF32);
  const Tensor x = torch::zeros({2, 64});
  EXPECT_TRUE(trainable_linear_fits(x, torch::zeros({32, 64})));
  EXPECT_FALSE(trainable_linear_fits(x, torch::zeros({33, 64})));
  EXPECT_FALSE(trainable_linear_fits(x.to(torch::kFloat64), torch::zeros({32, 64})));
  EXPECT_THROW(trainable_linear(kernels, x, torch::zeros({33, 64})), Error);
  EXPECT_THROW(trainable_linear(kernels, x, torch::zeros({32, 32})), Error);
  EXPECT_THROW(trainable_linear(kernels, x, torch::zeros({32, 64}), torch::zeros({31})), Error);
  EXPECT_EQ(trainable_linear(kernels, torch::zeros({0, 64}), torch::zeros({32, 64})).sizes(),
            (std::vector<int64_t>{0, 32}));
}

}  // namespace
}  // namespace aha
