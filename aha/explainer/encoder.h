// The frozen half of an explainer: pixels in, a list of feature maps out.
//
// Two kinds: a network of its own (DINOv3, v2, v1, any model directory), or the target's own activations.
// Levels are tap names. A level may join taps with '+' ("block.2+block.2.attention"): their channels are
// concatenated. Classifier::features says how a tap becomes a map.
#pragma once

#include <optional>

#include "aha/networks/classifier.h"

namespace aha {

struct EncoderInfo {
  std::string name;          // "target", or what the encoder was loaded from
  std::string architecture;  // "target", "dinov3_vits16", or the card's of a model directory
  std::string sha256;        // of its weights; the target's for "target"
  std::vector<std::string> levels;
  bool normalized = false;  // a transformer's final LayerNorm is applied to each level
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  const EncoderInfo& info() const { return info_; }

  // pixels (B, 3, H, W) in [0, 1] -> one (B, C_k, h_k, w_k) a level. No gradient flows.
  virtual std::vector<Tensor> features(const Tensor& pixels) = 0;

  // Whether features are this network's own activations.
  virtual bool looks_into(const Classifier& target) const { return false; }
  struct FeaturesAndTap {
    std::vector<Tensor> levels;
    Tensor tap;  // as Classifier::features has it
  };
  // Both from one forward pass of the network that it looks into.
  virtual FeaturesAndTap features_and_tap(const Tensor& pixels, const std::string& tap) = 0;

  // Whether features come from the forward pass of `target` that the relevance of its patches begins with
  // (Classifier::relevance).
  virtual bool gives_relevance(const Classifier& target) const { return false; }
  struct FeaturesAndRelevance {
    std::vector<Tensor> levels;
    Tensor values;           // of the patches, (B, n)
    Tensor values_by_block;  // (B, blocks, n), by the direct rule
  };
  // Both from that one pass, classes (B) int64; nothing where images of this size do not run that way.
  virtual std::optional<FeaturesAndRelevance> features_and_relevance(const Tensor& pixels,
                                                                     const Tensor& classes,
                                                                     TokenRelevance rule) {
    return std::nullopt;
  }

 protected:
  EncoderInfo info_;
};

// The target must outlive the encoder.
std::unique_ptr<Encoder> encoder_from_target(Classifier& target, std::vector<std::string> levels);

// A network of its own, which may lack a head. info: name, architecture, sha256, normalized.
std::unique_ptr<Encoder> encoder_from_classifier(std::shared_ptr<Classifier> network,
                                                 std::vector<std::string> levels, EncoderInfo info);

}  // namespace aha
