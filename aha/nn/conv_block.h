// The two pieces of a ConvNeXt.
//
// ChannelNorm: LayerNorm of each pixel over its channels, on (B, C, H, W).
// ConvBlock:   x + gamma * fc2(gelu(fc1(norm(dwconv7x7(x))))), the middle part channels-last.
// In channels_last memory the permutes around the norms and the linear layers move nothing.
//
// While its weights are learned on the CPU a block runs on the fast kernels (trainable_conv_block.h) where it
// fits. The plain way is their reference.
#pragma once

#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/normalization.h>

#include "aha/nn/mlp.h"
#include "aha/nn/trainable_conv_block.h"

namespace aha {

struct ChannelNormImpl : torch::nn::Cloneable<ChannelNormImpl> {
  explicit ChannelNormImpl(int64_t width, double eps = 1e-6) : width(width), eps(eps) { reset(); }
  void reset() override;
  Tensor forward(const Tensor& x);  // (B, C, H, W)

  int64_t width;
  double eps;
  Tensor weight, bias;
};
TORCH_MODULE(ChannelNorm);

struct ConvBlockImpl : torch::nn::Cloneable<ConvBlockImpl> {
  explicit ConvBlockImpl(int64_t width, double eps = 1e-6) : width(width), eps(eps) { reset(); }
  void reset() override;
  Tensor forward(const Tensor& x);        // (B, C, H, W)
  Tensor forward_plain(const Tensor& x);  // the same, operation by operation
  // Precision of the GEMMs in training; nothing = on libtorch.
  void set_precision(std::optional<Precision> wanted);
  ConvNextBlockWeights weights() const;  // as the fast kernels take them

  int64_t width;
  double eps;
  torch::nn::Conv2d conv_dw{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  Mlp mlp{nullptr};
  Tensor gamma;

 private:
  std::optional<Precision> precision_ = Precision::kF32;
  std::shared_ptr<TrainableConvBlock> trainable_;  // made when first needed
};
TORCH_MODULE(ConvBlock);

}  // namespace aha
