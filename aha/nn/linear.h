// y = x W^T + b, W stored as (out, in).
//
// Begins as zeros instead of random numbers: networks here are nearly always filled from a file, and drawing
// 300 M normal numbers that are overwritten a moment later costs seconds. A network that is to be trained
// from nothing has its own initialize().
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include "aha/tensor/tensor.h"

namespace aha {

struct LinearOptions {
  int64_t in, out;
};

struct LinearImpl : torch::nn::Cloneable<LinearImpl> {
  explicit LinearImpl(LinearOptions options) : options(options) { reset(); }
  void reset() override;
  Tensor forward(const Tensor& x);  // (..., in) -> (..., out)

  LinearOptions options;
  Tensor weight, bias;
};
TORCH_MODULE(Linear);

}  // namespace aha
