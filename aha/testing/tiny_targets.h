// Networks small enough for paper and pencil, and for tests that ask many questions: their weights are waves,
// the same on every machine.
#pragma once

#include "aha/tensor/torch.h"

#include <atomic>

#include "aha/networks/convnext.h"
#include "aha/networks/vit.h"

namespace aha::checks {

// Element k of tensor number m: amplitude * sin(0.63 k + 1.3 m).
inline void fill_with_wave(const Tensor& tensor, int m, double amplitude) {
  const torch::NoGradGuard no_grad;
  tensor.copy_((torch::arange(tensor.numel(), torch::kFloat64) * 0.63 + 1.3 * m)
                   .sin()
                   .mul(amplitude)
                   .view(tensor.sizes()));
}

inline void freeze(torch::nn::Module& network) {
  network.eval();
  for (auto& parameter : network.parameters()) parameter.requires_grad_(false);
}

inline ClassifierInfo plain_info(const std::string& name, int size) {
  ClassifierInfo info;
  info.name = info.architecture = name;
  info.input.size = size;
  info.input.rule = ResizeRule::kNone;
  return info;
}

// Counts the images it was asked about, from any number of threads; a subset of an image's patches counts as
// its share of the tokens.
template <class Network>
class Counted : public Network {
 public:
  using Network::Network;
  Tensor logits(const Tensor& pixels, Taps* taps = nullptr) override {
    evaluations += pixels.size(0);
    return Network::logits(pixels, taps);
  }
  Tensor patch_subset_logits(const Tensor& pixels, const Tensor& patches) override {
    Taps taps({"patch_embed"});
    Network::logits(pixels.slice(0, 0, 1), &taps);
    const auto prefix = static_cast<double>(this->prefix_tokens());
    parts += static_cast<double>(patches.size(0) * patches.size(1)) *
             (prefix + static_cast<double>(patches.size(2))) /
             (prefix + static_cast<double>(taps.at("patch_embed").size(1)));
    return Network::patch_subset_logits(pixels, patches);
  }
  void visit_attention_relevance(const Tensor& pixels, const Tensor& classes, int first_block,
                                 const AttentionVisitor& visitor) override {
    evaluations += pixels.size(0);
    Network::visit_attention_relevance(pixels, classes, first_block, visitor);
  }
  std::atomic<int64_t> evaluations = 0;
  std::atomic<double> parts = 0;  // of forward passes
};

// 3 x 4 x 4 pixels that need no normalization, patch 2, width 8, 2 heads, 2 blocks, 3 classes; LayerNorms 1
// and 0; the other 22 tensors are waves in the order below.
inline Vit golden_vit() {
  VitConfig config;
  config.image_size = 4, config.patch = 2, config.width = 8, config.depth = 2, config.heads = 2,
  config.mlp_hidden = 16, config.classes = 3;
  Vit vit(config);
  std::vector<std::string> names = {"patch_embed.proj.weight", "patch_embed.proj.bias", "cls_token",
                                    "pos_embed"};
  for (const std::string block : {"blocks.0.", "blocks.1."})
    for (const std::string part : {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"})
      for (const std::string kind : {".weight", ".bias"}) names.push_back(block + part + kind);
  names.insert(names.end(), {"head.weight", "head.bias"});
  const auto parameters = vit->named_parameters();
  for (size_t i = 0; i < names.size(); ++i)
    fill_with_wave(parameters[names[i]], static_cast<int>(i) + 1, 0.8);
  freeze(*vit);
  return vit;
}

inline ClassifierInfo golden_info() {
  ClassifierInfo info = plain_info("golden_vit", 4);
  info.input.mean = {0, 0, 0};
  info.input.std = {1, 1, 1};
  return info;
}

// 16 x 16 pixels, patch 4, 3 blocks, 5 classes.
inline Vit tiny_vit() {
  VitConfig config;
  config.image_size = 16, config.patch = 4, config.width = 16, config.depth = 3, config.heads = 2,
  config.mlp_hidden = 32, config.classes = 5;
  Vit vit(config);
  int m = 0;
  for (const auto& parameter : vit->named_parameters())
    if (parameter.key().find("norm") == std::string::npos) fill_with_wave(parameter.value(), ++m, 0.6);
  freeze(*vit);
  return vit;
}

// 16 x 16 pixels, 4 x 4 features, 5 classes.
inline ConvNext tiny_convnext() {
  ConvNextConfig config;
  config.image_size = 16, config.stem_stride = 2, config.depths = {1, 2}, config.widths = {8, 12},
  config.classes = 5;
  ConvNext net(config);
  int m = 0;
  for (const auto& parameter : net->named_parameters())
    if (parameter.key().find("norm") == std::string::npos) fill_with_wave(parameter.value(), ++m, 0.5);
  freeze(*net);
  return net;
}

// logits = W x, x the normalized image: every gradient is a row of W.
class LinearTarget : public Classifier {
 public:
  explicit LinearTarget(int size = 8, int classes = 4) : weights(torch::empty({classes, 3, size, size})) {
    info_ = plain_info("linear", size);
    info_.classes = classes;
    fill_with_wave(weights, 1, 1);
  }
  Tensor logits(const Tensor& pixels, Taps*) override {
    return normalized(pixels, info_.input).flatten(1).matmul(weights.flatten(1).t());
  }
  Tensor weights;  // (C, 3, H, W)
};

}  // namespace aha::checks
