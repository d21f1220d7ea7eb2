// The target: a frozen classifier, from pixels to logits.
//
// Blends with a reference happen in pixel space, so that normalization is part of the classifier: logits()
// takes [0, 1] pixels of the input size. Gradients flow to the pixels; the weights never need any.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aha/image/image.h"
#include "aha/image/resize.h"
#include "aha/nn/attention_visit.h"
#include "aha/nn/perturbed_images.h"
#include "aha/nn/taps.h"
#include "aha/tensor/tensor.h"

namespace aha {

enum class ResizeRule { kShortSide, kStretch, kNone };

enum class ChannelOrder { kRgb, kBgr };

// How an image becomes the network's input.
struct InputSpec {
  int size = 224;  // side of the square that the network sees
  // Short side to `resize` keeping the aspect, both sides to it, or nothing.
  ResizeRule rule = ResizeRule::kShortSide;
  int resize = 256;
  Filter filter = Filter::kBilinear;
  bool crop = true;  // center crop to `size` after resizing
  std::array<double, 3> mean = {0.485, 0.456, 0.406};
  std::array<double, 3> std = {0.229, 0.224, 0.225};  // both of red, green, blue in [0, 1]
  // In which the network gets them. Images, maps, references and colors are RGB everywhere else.
  ChannelOrder order = ChannelOrder::kRgb;
};

constexpr std::array<double, 3> kImageNetMeanColor = {0.485, 0.456, 0.406};

struct ClassifierInfo {
  std::string name;          // what the user typed, or the model directory's name
  std::string architecture;  // "vit_b_16", "convnext_small", "script"
  int classes = 0;
  std::vector<std::string> class_names;  // empty = only indices are known
  InputSpec input;
  // Of the training images, in [0, 1]: what the "mean" reference shows. It is not the normalization's mean,
  // which is 0.5 for many networks.
  std::array<double, 3> mean_color = kImageNetMeanColor;
  // Its training images had removed regions (its card's recipe says so): what it answers to a hole was
  // learned.
  bool masked_training = false;
  std::string sha256;  // of the weight file
};

// What the user says about a model beside naming it. Unset = as its card, its recipe or its preprocessing
// file says.
struct LoadOptions {
  std::optional<int> input_size;  // the resize before the crop keeps its proportion
  std::optional<std::array<double, 3>> mean, std;
};

struct RelevanceAndFeatures {
  Tensor patches;                // (B, n), row-major
  Tensor by_block;               // (B, blocks, n), their parts by the direct rule; undefined by Chefer's
  std::vector<Tensor> features;  // as Classifier::features
};

struct EngineMemory {
  int64_t packed_bytes = 0;     // of the weights
  int64_t workspace_bytes = 0;  // of one thread, at its largest so far
};

// Everything is safe from several threads. What has a default here runs on libtorch through logits() and its
// taps; a network with a fast engine does better.
class Classifier {
 public:
  virtual ~Classifier() = default;
  const ClassifierInfo& info() const { return info_; }

  // pixels (B, 3, size, size) in [0, 1] -> logits (B, C). Differentiable in the pixels.
  virtual Tensor logits(const Tensor& pixels, Taps* taps = nullptr) = 0;

  // Names that logits() can tap, in forward order. Empty for networks that cannot be looked into
  // (TorchScript).
  virtual std::vector<std::string> tap_names() const { return {}; }
  // Those that an explainer sees unless told, finest first.
  virtual std::vector<std::string> default_levels() const { return {}; }

  // Taps as feature maps (B, C, h, w), one each, without gradient. Tokens lose their prefix; an attention
  // becomes the class token's row, one channel per head, times T so that 1 is the average. An image's maps do
  // not depend on its batch mates.
  virtual std::vector<Tensor> features(const Tensor& pixels, const std::vector<std::string>& taps);

  // Cost: B * S forward passes, and as many backward passes with the gradient. Memory does not grow with S.
  // scores and gradient are on the CPU.
  virtual PerturbedScores perturbed_scores(const PerturbedImages& images, bool with_gradient);

  // Pooling, norm and head applied to the tap "features": (B, C, h, w) of any h and w -> logits,
  // differentiable. Of ConvNets that offer this tap.
  virtual Tensor logits_from_features(const Tensor& features);

  // The gradient of sum_c weights_c logit_c, weights (C), by what the head reads before a final norm, that
  // norm's standard deviation held fixed: the logit is then a sum over the parts of what is read. read (n, D)
  // are pooled features -> (n, D), or the tokens of one image behind the last block -> (class tokens, D).
  virtual Tensor head_direction(const Tensor& read, const Tensor& weights);

  // The last linear layer, (C, D); undefined where it is not known.
  virtual Tensor head_weights() const { return {}; }

  // ---- transformers ----

  // Taps of a transformer are (B, T, D): this many tokens (class, distillation, registers) come before the
  // patches, which are row-major. 0 = no transformer.
  virtual int prefix_tokens() const { return 0; }

  // Whether its blocks can be asked one by one: subsets of patches, relevance through a block, the gradient
  // by one block's attention. Not those of an exported graph.
  virtual bool opens_blocks() const { return false; }

  // Relevance of every patch (attribution formulas: attention_maps.h) and the features of these taps, from
  // one forward and, for Chefer's, one backward pass; classes (B) int64. Nothing where this network has no
  // engine for it, or not for this size.
  virtual bool gives_relevance(const std::vector<std::string>& taps) const { return false; }
  virtual std::optional<RelevanceAndFeatures> relevance(const Tensor& pixels, const Tensor& classes,
                                                        const std::vector<std::string>& taps,
                                                        TokenRelevance rule = TokenRelevance::kChefer) {
    return std::nullopt;
  }

  // Shows the attention of each image, last block first: formulas that follow the class token's row down to
  // the patches need no more than one block at a time. Images may be shown in turns and from several threads,
  // one image's blocks from one. An image's numbers do not depend on its batch mates. Cost: one forward pass,
  // and the backward pass to first_block; none for kDirect.
  virtual void visit_attention(const Tensor& pixels, const Tensor& classes, const AttentionVisit& visit,
                               const AttentionVisitor& visitor);

  // The same with the logit's gradient, and in the place of the attention its relevance for the logit
  // (nn/block_relevance.h). On libtorch. Cost: one forward and one backward pass, and about five forward
  // passes for the relevance.
  virtual void visit_attention_relevance(const Tensor& pixels, const Tensor& classes, int first_block,
                                         const AttentionVisitor& visitor);

  // Logits of the network that gets the prefix and these patches alone: patches (B, S, n) int64, row-major
  // indices, S subsets of n patches per image -> (B, S, C). Without gradient.
  virtual Tensor patch_subset_logits(const Tensor& pixels, const Tensor& patches);
  // Final norm and head applied to the tokens (B, T, D) behind any block -> (B, C).
  virtual Tensor read_out(const Tensor& tokens);
  // By a block's attention, where `stream` (Q, D) is the gradient of what it writes into the first Q tokens,
  // and `normed` (T, D) what it reads (tap "block.N.norm1"): (heads, Q, T)
  virtual Tensor attention_gradient(int block, const Tensor& normed, const Tensor& stream);

  // Nothing = no engine.
  virtual std::optional<EngineMemory> engine_memory() const { return std::nullopt; }

 protected:
  ClassifierInfo info_;
};

// Taps as feature maps, see Classifier::features. values[i] is the tap called names[i].
std::vector<Tensor> maps_from_taps(const std::vector<Tensor>& values, const std::vector<std::string>& names,
                                   int prefix_tokens);

// The network's input from an image: (3, size, size) in [0, 1], bit-exact with Pillow and torchvision up to
// the division by 255.
Tensor input_from_image(const Image& image, const InputSpec& spec);

// (B, 3, H, W) pixels -> (x - mean) / std, RGB
Tensor normalized(const Tensor& pixels, const InputSpec& spec);
// The same in the network's order of channels: what its first layer gets.
Tensor network_input(const Tensor& pixels, const InputSpec& spec);
// Weights (., 3, ., .) of a first layer that expects this order, for one that gets RGB.
Tensor weights_for_rgb(const Tensor& weights, const InputSpec& spec);

// The recipe with the user's overrides in it.
InputSpec with_overrides(InputSpec spec, const LoadOptions& options);

}  // namespace aha
