// Checks that the tests of several networks share. Needs gtest and all of torch.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "aha/base/error.h"
#include "aha/tensor/tensor.h"

namespace aha::testing_nets {

// d f / d x against central differences at several places; f and x in double.
inline void expect_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const auto variable = x.clone().requires_grad_();
  const auto gradient = torch::autograd::grad({f(variable)}, {variable})[0].flatten();
  const double scale = gradient.abs().max().item<double>();
  EXPECT_GT(scale, 0);
  // Central differences: error of order step^2 plus rounding of order 1e-16 / step.
  const double step = 1e-5;
  for (int64_t i = 0; i < x.numel(); i += std::max<int64_t>(1, x.numel() / 17)) {
    const auto moved = [&](double by) {
      auto there = x.clone();
      there.view(-1)[i] += by;
      return f(there).item<double>();
    };
    EXPECT_NEAR(gradient[i].item<double>(), (moved(step) - moved(-step)) / (2 * step), 1e-7 * (1 + scale))
        << "at " << i;
  }
}

}  // namespace aha::testing_nets
