// One learned factor per channel on a residual branch: x * gamma.
#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include "aha/tensor/tensor.h"

namespace aha {

struct LayerScaleImpl : torch::nn::Cloneable<LayerScaleImpl> {
  explicit LayerScaleImpl(int64_t width) : width(width) { reset(); }
  void reset() override { gamma = register_parameter("gamma", at::ones({width})); }
  Tensor forward(const Tensor& x) { return x * gamma; }  // (..., D)

  int64_t width;
  Tensor gamma;
};
TORCH_MODULE(LayerScale);

}  // namespace aha
