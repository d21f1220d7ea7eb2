// The target: a frozen classifier, from pixels to logits.
//
// Blends with a reference happen in pixel space, so that normalisation is part of the classifier: logits()
// takes [0, 1] pixels of the input size. Gradients flow to the pixels; the weights never need any.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aha/image/image.h"
#include "aha/image/resize.h"
#include "aha/nn/taps.h"
#include "aha/tensor/tensor.h"

namespace aha {

class FrozenNetwork;

enum class ResizeRule { kShortSide, kStretch, kNone };

// How a picture becomes the network's input.
struct InputSpec {
  int size = 224;  // side of the square that the network sees
  // Short side to `resize` keeping the aspect, both sides to it, or nothing.
  ResizeRule rule = ResizeRule::kShortSide;
  int resize = 256;
  Filter filter = Filter::kBilinear;
  bool crop = true;  // centre crop to `size` after resizing
  std::array<double, 3> mean = {0.485, 0.456, 0.406};
  std::array<double, 3> std = {0.229, 0.224, 0.225};
};

constexpr std::array<double, 3> kImageNetMeanColor = {0.485, 0.456, 0.406};

struct ClassifierInfo {
  std::string name;          // what the user typed, or the model directory's name
  std::string architecture;  // "vit_b_16", "convnext_small", "script"
  int classes = 0;
  std::vector<std::string> class_names;  // empty = only indices are known
  InputSpec input;
  // Of the training images, in [0, 1]: what the "mean" reference shows. It is not the normalization's mean, which is 0.5 for many networks.
  std::array<double, 3> mean_color = kImageNetMeanColor;
  std::string sha256;  // of the weight file
};

// What the user says about a model beside naming it. Unset = as its card, its recipe or its preprocessing
// file says.
struct LoadOptions {
  std::optional<int> input_size;  // the resize before the crop keeps its proportion
  std::optional<std::array<double, 3>> mean, std;
};

class Classifier {
 public:
  virtual ~Classifier() = default;
  const ClassifierInfo& info() const { return info_; }

  // pixels (B, 3, size, size) in [0, 1] -> logits (B, C). Differentiable in the pixels.
  virtual Tensor logits(const Tensor& pixels, Taps* taps = nullptr) = 0;

  // Names that logits() can tap, in forward order. Empty for networks that cannot be looked into
  // (TorchScript).
  virtual std::vector<std::string> tap_names() const { return {}; }

  // Taps of a transformer are (B, T, D): this many tokens (class, distillation, registers) come before the
  // patches, which are row-major.
  virtual int prefix_tokens() const { return 0; }

  // The rows of the last linear layer, (C, D); undefined where they are not known.
  virtual Tensor class_rows() const { return {}; }

  // The fast engine of this network on the CPU (nn/frozen_network.h); null where there is none.
  virtual FrozenNetwork* engine() { return nullptr; }

 protected:
  ClassifierInfo info_;
};

// The network's input from a picture: (3, size, size) in [0, 1], bit-exact with Pillow and torchvision up to
// the division by 255.
Tensor input_from_image(const Image& image, const InputSpec& spec);

// (B, 3, H, W) pixels -> (x - mean) / std
Tensor normalised(const Tensor& pixels, const InputSpec& spec);

// The recipe with the user's wishes in it.
InputSpec with_wishes(InputSpec spec, const LoadOptions& options);

}  // namespace aha
