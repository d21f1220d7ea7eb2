#include "aha/nn/border_gelu.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

struct Outcome {
  Tensor out, gradient;
};

template <class Step>
Outcome outcome_of(const Tensor& x, const Tensor& upstream, Step step) {
  const Tensor in = x.detach().clone().requires_grad_();
  const Tensor out = step(in);
  (out * upstream).sum().backward();
  return {out.detach(), in.grad()};
}

const std::vector<std::vector<int64_t>> kShapes = {{3, 5, 4, 6}, {1, 32, 1, 1}, {2, 1, 1, 7}, {2, 16, 9, 2}};

TEST(WithBorder, EqualsReplicationPadding) {
  for (const auto& shape : kShapes)
    for (const auto memory : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
      torch::manual_seed(1);
      const Tensor x = torch::randn(shape).contiguous(memory);
      const Tensor upstream = torch::randn({shape[0], shape[1], shape[2] + 2, shape[3] + 2});
      const Outcome expected = outcome_of(x, upstream, [](const Tensor& in) {
        return at::replication_pad2d(in, {1, 1, 1, 1});
      });
      const Outcome found = outcome_of(x, upstream, with_border);
      EXPECT_TRUE(torch::equal(found.out, expected.out));
      EXPECT_LT(checks::relative(found.gradient, expected.gradient), 1e-6);
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::equal(with_border(x), expected.out));
    }
}

TEST(WithBorder, OtherNumbersAndShapesGoToLibtorchOrAreRefused) {
  const Tensor x = torch::randn({1, 2, 3, 3}, torch::kFloat64);
  EXPECT_TRUE(torch::equal(with_border(x), at::replication_pad2d(x, {1, 1, 1, 1})));
  EXPECT_THROW(with_border(torch::zeros({2, 3})), Error);
}

TEST(GeluOf, EqualsLibtorchsInAnyMemoryOrderAndNumberOfThreads) {
  torch::manual_seed(2);
  const Tensor wide = 3 * torch::randn({3, 40, 23, 17});  // more than two pieces
  for (const Tensor& x : {wide, wide.contiguous(at::MemoryFormat::ChannelsLast), wide.slice(3, 2, 9)})
    for (const int threads : {1, 3}) {
      set_threads(threads);
      const Tensor upstream = torch::randn_like(x);
      // float64: libtorch 1.13 loses this gradient where strides differ (explainer/dpt.cpp).
      const Outcome expected =
          outcome_of(x.to(torch::kFloat64), upstream, [](const Tensor& in) { return torch::gelu(in); });
      const Outcome found = outcome_of(x, upstream, gelu_of);
      EXPECT_LT(checks::relative(found.out, expected.out.to(torch::kFloat32)), 1e-6);
      EXPECT_LT(checks::relative(found.gradient, expected.gradient.to(torch::kFloat32)), 1e-6);
      const torch::NoGradGuard no_grad;
      EXPECT_TRUE(torch::equal(gelu_of(x), found.out));
    }
  set_threads(0);
}

TEST(FeatureMaps, GradientsAreDerivatives) {
  torch::manual_seed(3);
  const Tensor x = torch::randn({2, 3, 3, 4}), upstream = torch::randn({2, 3, 5, 6}, torch::kFloat64);
  const auto loss = [&](const Tensor& in) {
    return (gelu_of(with_border(in)).to(torch::kFloat64) * upstream).sum();
  };
  const Tensor in = x.clone().requires_grad_();
  loss(in).backward();
  const torch::NoGradGuard no_grad;
  const double norm = in.grad().norm().item<double>();
  const Tensor direction = in.grad() / norm;
  constexpr double kStep = 1e-2;
  const double slope =
      (loss(x + kStep * direction) - loss(x - kStep * direction)).item<double>() / (2 * kStep);
  EXPECT_NEAR(slope, norm, 1e-3 * norm);
}

}  // namespace
}  // namespace aha
