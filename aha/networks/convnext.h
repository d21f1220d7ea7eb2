// ConvNeXt: tiny, small, base, and small relatives for 32x32 images.
//
//   stem     convolution of kernel and stride `stem_stride`, channel norm
//   stage s  from the second on: channel norm and a 2x2 convolution of stride 2; then depths[s] blocks
//   logits   head.fc(head.norm(mean over H x W)): pooled first, normalized then
//
// Taps: "stem", "stage.{s}.block.{j}", "stage.{s}" and "features" (what enters the pool), all (B, C, H, W).
#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>

#include "aha/base/context.h"
#include "aha/base/options.h"
#include "aha/networks/network_classifier.h"
#include "aha/networks/onnx_forward.h"
#include "aha/nn/conv_block.h"
#include "aha/weights/names.h"

namespace aha {

struct ConvNextConfig {
  int image_size = 224;  // what it was trained at; the network itself takes any size
  int stem_stride = 4;
  std::vector<int> depths = {3, 3, 27, 3};
  std::vector<int> widths = {96, 192, 384, 768};
  int classes = 1000;
  double eps = 1e-6;
  double head_eps = 1e-6;  // of the last LayerNorm; Hugging Face's port has 1e-12
};
Fields fields(ConvNextConfig& config);

ConvNextConfig convnext_config_from_weights(const CanonicalWeights& weights);

struct ConvNextStageImpl : torch::nn::Cloneable<ConvNextStageImpl> {
  // previous = 0: the first stage, which does not shrink its input.
  ConvNextStageImpl(int previous, int width, int depth, double eps)
      : previous(previous), width(width), depth(depth), eps(eps) {
    reset();
  }
  void reset() override;
  Tensor forward(Tensor x, Taps* taps, const std::string& name);

  int previous, width, depth;
  double eps;
  torch::nn::Sequential downsample{nullptr};
  torch::nn::ModuleList blocks;
};
TORCH_MODULE(ConvNextStage);

struct ConvNextHeadImpl : torch::nn::Cloneable<ConvNextHeadImpl> {
  ConvNextHeadImpl(int width, int classes, double eps) : width(width), classes(classes), eps(eps) { reset(); }
  void reset() override;
  Tensor forward(const Tensor& features);  // (B, C_last, h, w) -> (B, C)

  int width, classes;
  double eps;
  torch::nn::LayerNorm norm{nullptr};
  Linear fc{nullptr};
};
TORCH_MODULE(ConvNextHead);

struct ConvNextImpl : torch::nn::Cloneable<ConvNextImpl>, Network, OnnxSource {
  explicit ConvNextImpl(ConvNextConfig config) : config(std::move(config)) { reset(); }
  void reset() override;
  torch::nn::Module& module() override { return *this; }
  const char* family() const override { return "convnext"; }
  nlohmann::json config_json() const override;
  int classes() const override { return config.classes; }
  int image_size() const override { return config.image_size; }

  Tensor forward(const Tensor& x, Taps* taps = nullptr) override;  // (B, 3, H, W) normalized -> (B, C)
  Tensor features(const Tensor& x, Taps* taps = nullptr);          // (B, w_last, h, w)
  std::vector<std::string> tap_names() const override;
  std::vector<std::string> default_levels() const override;  // the stages
  Tensor head_weights() const override { return head->fc->weight; }
  Tensor logits_from_features(const Tensor& features) override;
  Tensor head_direction(const Tensor& read, const Tensor& weights) override;
  std::unique_ptr<Engine> make_engine(const InputSpec& input, Precision precision) override;
  OnnxForward write_onnx(OnnxBuilder& g, const OnnxValue& x) override;
  OnnxValue write_onnx_shares(OnnxBuilder& g, const OnnxForward& forward, const OnnxValue& classes) override;
  // Truncated normal of std 0.02 for convolutions and matrices, zero biases, layer scale 1e-6; the same seed
  // gives the same numbers.
  void initialize(uint64_t seed) override;
  void set_layer_scale(double scale) override;
  // Precision of the GEMMs in training; nothing = on libtorch.
  void set_precision(std::optional<Precision> precision) override;

  ConvNextConfig config;
  torch::nn::Sequential stem{nullptr};
  torch::nn::ModuleList stages;
  ConvNextHead head{nullptr};
};
TORCH_MODULE(ConvNext);

using ConvNextClassifier = NetworkClassifier;

}  // namespace aha
