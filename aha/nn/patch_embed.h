// Pixels to tokens: a convolution of kernel and stride P, its grid read row by row.
#pragma once

#include <torch/nn/modules/conv.h>

#include "aha/tensor/tensor.h"

namespace aha {

struct PatchEmbedOptions {
  int64_t patch, width, channels = 3;
};

struct PatchEmbedImpl : torch::nn::Cloneable<PatchEmbedImpl> {
  explicit PatchEmbedImpl(PatchEmbedOptions options) : options(options) { reset(); }
  void reset() override;
  // (B, 3, H, W) -> (B, (H/P)(W/P), D). A remainder at the right or bottom edge is dropped.
  Tensor forward(const Tensor& x);

  PatchEmbedOptions options;
  torch::nn::Conv2d proj{nullptr};
};
TORCH_MODULE(PatchEmbed);

}  // namespace aha
