#include "aha/nn/conv_block.h"

namespace aha {

void ChannelNormImpl::reset() {
  weight = register_parameter("weight", torch::ones({width}));
  bias = register_parameter("bias", torch::zeros({width}));
}

Tensor ChannelNormImpl::forward(const Tensor& x) {
  return torch::layer_norm(x.permute({0, 2, 3, 1}), {width}, weight, bias, eps).permute({0, 3, 1, 2});
}

void ConvBlockImpl::reset() {
  conv_dw = register_module(
      "conv_dw", torch::nn::Conv2d(torch::nn::Conv2dOptions(width, width, 7).padding(3).groups(width)));
  norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(eps)));
  mlp = register_module("mlp", Mlp(MlpOptions{width, 4 * width}));
  gamma = register_parameter("gamma", torch::full({width}, 1e-6));
}

void ConvBlockImpl::set_precision(std::optional<Precision> wanted) {
  if (precision_ == wanted) return;
  precision_ = wanted;
  trainable_ = nullptr;
}

Tensor ConvBlockImpl::forward(const Tensor& x) {
  const auto plain = [](const Tensor& t) { return t.is_cpu() && t.scalar_type() == torch::kFloat32; };
  const auto& weight = mlp->fc1->weight;
  if (!precision_ || !weight.requires_grad() || !plain(x) || !plain(weight) ||
      !TrainableConvBlock::fits(width))
    return forward_plain(x);
  if (!trainable_)
    trainable_ = std::make_shared<TrainableConvBlock>(width, eps, best_kernel_set(*precision_));
  return trainable_->forward(x, weights());
}

ConvNextBlockWeights ConvBlockImpl::weights() const {
  return {conv_dw->weight, conv_dw->bias,    norm->weight,   norm->bias, mlp->fc1->weight,
          mlp->fc1->bias,  mlp->fc2->weight, mlp->fc2->bias, gamma};
}

Tensor ConvBlockImpl::forward_plain(const Tensor& x) {
  const auto y = mlp(norm(conv_dw(x).permute({0, 2, 3, 1}))) * gamma;  // (B, H, W, C)
  return x + y.permute({0, 3, 1, 2});
}

}  // namespace aha
