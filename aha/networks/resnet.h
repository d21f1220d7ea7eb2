// ResNet-18, 34, 50, 101 (He et al. 2016) as torchvision and timm have them: the stride of a bottleneck is in
// its 3x3 convolution. By its config also as Keras and Caffe have them: the stride in the first 1x1
// convolution, convolutions with biases, another eps.
//
//   stem     convolution 7x7 of stride 2, BatchNorm, ReLU, 3x3 max pooling of stride 2;
//            with a kernel of 3, for small images: stride 1 and no pooling
//   stage s  depths[s] blocks, the first of stride 2 from the second stage on
//   block    basic       relu(x' + bn2(conv3x3(relu(bn1(conv3x3(x))))))
//            bottleneck  relu(x' + bn3(conv1x1(relu(bn2(conv3x3(relu(bn1(conv1x1(x)))))))), four times as
//            wide at its end x' = x, or bn(conv1x1(x)) where the shape changes
//   logits   fc(mean over H x W)
//
// Taps: "stem", "stage.{s}.block.{j}", "stage.{s}" and "features" (what enters the pool, Grad-CAM's usual
// layer), all (B, C, H, W).
//
// The frozen network folds every BatchNorm into the convolution before it: w' = w * gamma / sqrt(var + eps),
// b' = beta + (b - mean) * gamma / sqrt(var + eps).
#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>

#include "aha/base/options.h"
#include "aha/networks/network.h"
#include "aha/networks/onnx_forward.h"
#include "aha/nn/linear.h"
#include "aha/weights/names.h"

namespace aha {

struct ResNetConfig {
  int image_size = 224;  // what it was trained at; the network itself takes any size
  int stem_kernel = 7;   // 7 or 3
  bool bottleneck = false;
  std::vector<int> depths = {2, 2, 2, 2};
  std::vector<int> widths = {64, 128, 256, 512};  // of the blocks' 3x3 convolutions
  int classes = 1000;
  bool conv_bias = false;     // convolutions with biases
  bool stride_first = false;  // of a bottleneck: in its first 1x1 convolution instead of the 3x3
  double eps = 1e-5;          // of every BatchNorm
};
Fields fields(ResNetConfig& config);

ResNetConfig resnet_config_from_weights(const CanonicalWeights& weights);

// y = (x - running_mean) / sqrt(running_var + eps) * weight + bias; while it learns, mean and variance are
// the batch's.
struct BatchNormImpl : torch::nn::Cloneable<BatchNormImpl> {
  BatchNormImpl(int width, double eps) : width(width), eps(eps) { reset(); }
  void reset() override;
  Tensor forward(const Tensor& x);

  int width;
  double eps;
  Tensor weight, bias, running_mean, running_var;  // (C)
};
TORCH_MODULE(BatchNorm);

struct ResNetBlockImpl : torch::nn::Cloneable<ResNetBlockImpl> {
  ResNetBlockImpl(int inputs, int width, int stride, const ResNetConfig& config)
      : inputs(inputs), width(width), stride(stride), config(config) {
    reset();
  }
  void reset() override;
  Tensor forward(const Tensor& x);
  int outputs() const { return config.bottleneck ? 4 * width : width; }

  int inputs, width, stride;
  ResNetConfig config;
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
  BatchNorm bn1{nullptr}, bn2{nullptr}, bn3{nullptr};
  torch::nn::Sequential downsample{nullptr};
};
TORCH_MODULE(ResNetBlock);

struct ResNetImpl : torch::nn::Cloneable<ResNetImpl>, Network, OnnxSource {
  explicit ResNetImpl(ResNetConfig config) : config(std::move(config)) { reset(); }
  void reset() override;

  torch::nn::Module& module() override { return *this; }
  const char* family() const override { return "resnet"; }
  nlohmann::json config_json() const override;
  int classes() const override { return config.classes; }
  int image_size() const override { return config.image_size; }

  Tensor forward(const Tensor& x, Taps* taps = nullptr) override;
  std::vector<std::string> tap_names() const override;
  std::vector<std::string> default_levels() const override;  // the stages
  Tensor head_weights() const override { return fc->weight; }
  Tensor logits_from_features(const Tensor& features) override;
  // He's normal initialization of the convolutions; the last BatchNorm of a block begins at 0, so that blocks
  // begin as the identity.
  void initialize(uint64_t seed) override;
  std::unique_ptr<Engine> make_engine(const InputSpec& input, Precision precision) override;
  OnnxForward write_onnx(OnnxBuilder& g, const OnnxValue& x) override;
  OnnxValue write_onnx_shares(OnnxBuilder& g, const OnnxForward& forward, const OnnxValue& classes) override;

  ResNetConfig config;
  torch::nn::Conv2d conv1{nullptr};
  BatchNorm bn1{nullptr};
  std::vector<torch::nn::ModuleList> layers;  // "layer1", ...
  Linear fc{nullptr};
};
TORCH_MODULE(ResNet);

}  // namespace aha
