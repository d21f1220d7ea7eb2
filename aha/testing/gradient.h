// How far tensors are from what they should be. Finite differences in double say whether a gradient is the
// derivative of its function.
//
// The central difference with step h errs by h^2 f'''/6 and by rounding, 1e-16 |f| / h: with the default h =
// 1e-5 about 1e-10 each where f is of order one. The error returned is relative to the largest component, so
// 1e-6 is a safe bound for a correct gradient.
#pragma once

#include "aha/tensor/torch.h"

#include <functional>

namespace aha::checks {

// f: any tensor -> a scalar tensor, differentiable. x is taken as double. Returns max |autograd - difference|
// / max(|difference|, 1e-8).
inline double gradient_error(const std::function<at::Tensor(const at::Tensor&)>& f, const at::Tensor& x,
                             double step = 1e-5) {
  const at::Tensor point = x.detach().to(torch::kFloat64).contiguous().clone().set_requires_grad(true);
  const at::Tensor grad = torch::autograd::grad({f(point)}, {point})[0].contiguous();
  const torch::NoGradGuard no_grad;
  at::Tensor moved = point.detach().clone(), difference = torch::zeros_like(moved);
  auto* value = moved.data_ptr<double>();
  for (int64_t n = 0; n < moved.numel(); ++n) {
    const double here = value[n];
    value[n] = here + step;
    const double up = f(moved).item<double>();
    value[n] = here - step;
    const double down = f(moved).item<double>();
    value[n] = here;
    difference.data_ptr<double>()[n] = (up - down) / (2 * step);
  }
  const double largest = difference.abs().max().item<double>();
  return (grad - difference).abs().max().item<double>() / std::max(largest, 1e-8);
}

// |found - expected| / |expected|
inline double relative(const at::Tensor& found, const at::Tensor& expected) {
  return ((found - expected).norm() / expected.norm()).item<double>();
}

}  // namespace aha::checks
