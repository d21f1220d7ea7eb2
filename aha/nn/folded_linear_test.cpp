#include "aha/nn/folded_linear.h"

#include <gtest/gtest.h>

#include "aha/kernels/kernel_set.h"
#include "aha/nn/plain_tensors.h"
#include "aha/testing/close.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

constexpr int64_t N = 7, K = 33;

AffineLinear random_linear() {
  torch::manual_seed(1);
  return {torch::randn({N, K}),
          torch::randn({N}),
          torch::randn({K}),
          torch::randn({K}),
          torch::randn({N}),
          3,
          0.125};
}

// s * (W (gamma x + beta) + b) in float64.
Tensor by_layers(const AffineLinear& m, const Tensor& x) {
  Tensor factor = torch::ones({N}, torch::kFloat64);
  factor.slice(0, 0, m.factor_outputs).fill_(m.factor);
  const auto d = [](const Tensor& t) { return t.to(torch::kFloat64); };
  return factor * d(m.scale) * (torch::linear(d(m.gamma) * x + d(m.beta), d(m.weight)) + d(m.bias));
}

TEST(FoldedLinear, GivesWhatTheLayersGaveOneByOne) {
  const AffineLinear m = random_linear();
  const FoldedLinear f = folded(m);
  const Tensor x = torch::randn({5, K}, torch::kFloat64), expected = by_layers(m, x);  // (5, N)
  const Tensor weight = torch::from_blob(const_cast<float*>(f.weight.data()), {N, K}).to(torch::kFloat64);
  const Tensor bias = torch::from_blob(const_cast<float*>(f.bias.data()), {N}).to(torch::kFloat64);
  const Tensor found = torch::linear(x, weight) + bias;
  // Each folded number is rounded once.
  const Tensor most = checks::kF32Epsilon * (torch::linear(x.abs(), weight.abs()) + bias.abs());
  EXPECT_TRUE(((found - expected).abs() <= most).all().item<bool>());
  EXPECT_GT((found - expected).abs().max().item<double>(), 0) << "nothing was rounded";
}

TEST(FoldedLinear, UnfoldedGradientsAreThoseOfTheLayers) {
  AffineLinear m = random_linear();
  const Tensor x = torch::randn({5, K}, torch::kFloat64), upstream = torch::randn({5, N}, torch::kFloat64);
  AffineLinear leaves = m;
  for (Tensor* t : {&leaves.weight, &leaves.bias, &leaves.gamma, &leaves.beta, &leaves.scale})
    *t = t->clone().requires_grad_();
  (by_layers(leaves, x) * upstream).sum().backward();

  const Tensor d_weight = upstream.t().matmul(x).to(torch::kFloat32).contiguous(),
               d_bias = upstream.sum(0).to(torch::kFloat32);
  const AffineLinear to{torch::zeros({N, K}), torch::zeros({N}), torch::zeros({K}), torch::zeros({K}),
                        torch::zeros({N})};
  unfold(m, floats(d_weight), floats(d_bias), to);
  const double most = checks::sum_bound(K, 1);
  EXPECT_LT(checks::relative(to.weight, leaves.weight.grad()), most);
  EXPECT_LT(checks::relative(to.bias, leaves.bias.grad()), most);
  EXPECT_LT(checks::relative(to.gamma, leaves.gamma.grad()), most);
  EXPECT_LT(checks::relative(to.beta, leaves.beta.grad()), most);
  EXPECT_LT(checks::relative(to.scale, leaves.scale.grad()), most);
}

TEST(PackedLinear, ForwardAndBackwardPacksHoldTheSameTransposedWeights) {
  const FoldedLinear f = folded(random_linear());
  for (const KernelSet* kernels : available_kernel_sets()) {
    const PackedLinear forward(kernels->format, f), backward(kernels->format, f, Pass::kBackward),
        some(kernels->format, f, Pass::kForward, 2, 3);
    EXPECT_EQ(forward.backward(*kernels, 1).unpacked(), backward.backward(*kernels).unpacked());
    EXPECT_EQ(some.forward().at(0, 5), forward.forward().at(2, 5));
    EXPECT_EQ(some.bias()[2], forward.bias()[4]);
    for (int64_t n = 3; n < some.forward().padded_outputs(); ++n) EXPECT_EQ(some.bias()[n], 0);
  }
}

}  // namespace
}  // namespace aha
