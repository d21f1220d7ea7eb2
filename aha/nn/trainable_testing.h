// What the tests of trainable blocks share: random weights, everything a block's backward pass gives, and how
// close it must be.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "aha/kernels/sets/sets_under_test.h"
#include "aha/tensor/torch.h"

namespace aha::checks {

// Random everything, norms, biases and scales too, so that folding them wrongly shows.
inline void randomize(torch::nn::Module& block) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(7);
  for (auto& item : block.named_parameters()) {
    at::Tensor p = item.value();
    if (p.dim() >= 2)
      p.copy_(torch::randn_like(p) / std::sqrt(static_cast<double>(p.numel() / p.size(0))));
    else if (item.key().ends_with("bias"))
      p.copy_(0.2 * torch::randn_like(p));
    else
      p.copy_(0.8 + 0.2 * torch::randn_like(p));
  }
}

using BlockForward = std::function<at::Tensor(const at::Tensor&)>;

struct BlockResult {
  at::Tensor out;
  std::vector<std::pair<std::string, at::Tensor>> gradients;  // "input" first
};

// forward(x) and the gradients of sum(forward(x) * upstream).
inline BlockResult result_of(torch::nn::Module& block, const at::Tensor& x, const at::Tensor& upstream,
                             const BlockForward& forward) {
  block.zero_grad();
  const at::Tensor in = x.clone().requires_grad_();
  const at::Tensor out = forward(in);
  (out * upstream).sum().backward();
  BlockResult result{out.detach(), {{"input", in.grad()}}};
  for (auto& item : block.named_parameters())
    result.gradients.emplace_back(item.key(), item.value().grad().clone());
  return result;
}

inline void expect_equal_bits(const BlockResult& found, const BlockResult& expected) {
  EXPECT_TRUE(torch::equal(found.out, expected.out));
  ASSERT_EQ(found.gradients.size(), expected.gradients.size());
  for (size_t i = 0; i < expected.gradients.size(); ++i)
    EXPECT_TRUE(torch::equal(found.gradients[i].second, expected.gradients[i].second))
        << expected.gradients[i].first;
}

// The gradients of loss = sum(forward(x) * upstream) by x and by every weight of the block, against
// differences.
inline void expect_gradients_are_derivatives(torch::nn::Module& block, const at::Tensor& x,
                                             const at::Tensor& upstream, const BlockForward& forward) {
  const auto loss = [&](const at::Tensor& in) { return (forward(in).to(torch::kFloat64) * upstream).sum(); };
  const at::Tensor in = x.clone().requires_grad_();
  loss(in).backward();
  std::vector<std::pair<std::string, at::Tensor>> points = {{"input", in}};
  for (auto& item : block.named_parameters()) points.emplace_back(item.key(), item.value());
  const torch::NoGradGuard no_grad;
  for (auto& [name, point] : points) {
    // Along the gradient itself the derivative is its norm: large against rounding, which a step of 1e-2
    // turns into 1e-5 of |upstream|; the step's own error is its square.
    const double norm = point.grad().norm().item<double>();
    const at::Tensor direction = point.grad() / norm;
    constexpr double kStep = 1e-2;
    const at::Tensor here = point.detach().clone();
    point.copy_(here + kStep * direction);
    const double up = loss(in).item<double>();
    point.copy_(here - kStep * direction);
    const double down = loss(in).item<double>();
    point.copy_(here);
    EXPECT_NEAR((up - down) / (2 * kStep), norm, 1e-3 * norm + 1e-5 * upstream.norm().item<double>()) << name;
  }
}

// Relative error of what follows `products` rounded results in a row, each a float32 sum of at most `terms`,
// here and on libtorch.
inline double tolerance_of(Format format, int64_t products, int64_t terms) {
  return chain_bound(format, products) + 2 * sum_bound(terms, std::sqrt(static_cast<double>(products)));
}

}  // namespace aha::checks
