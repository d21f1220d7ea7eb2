// The frozen half of an explainer: pixels in, a list of feature maps out.
//
// Two kinds: a vision transformer of its own (DINOv3, v2, v1 or any model directory), whose patch tokens are
// taken after some blocks; or the target's own activations, taken by tap name. A level of the second kind may
// join taps with '+' ("block.2+block.2.attention"): their channels are concatenated. Tokens (B, T, D) become
// maps without their prefix tokens; an attention (B, heads, T, T) becomes its class-token row, one channel a
// head, times T so that 1 is the average.
#pragma once

#include <optional>

#include "aha/models/classifier.h"

namespace aha {

struct EncoderInfo {
  std::string name;    // "target", or what the encoder was loaded from
  std::string sha256;  // of its weights; the target's for "target"
  std::vector<std::string> levels;
  bool normalized = false;  // the encoder's final LayerNorm was applied to each level
  std::array<double, 3> mean = {0.485, 0.456, 0.406}, std = {0.229, 0.224, 0.225};
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  const EncoderInfo& info() const { return info_; }

  // pixels (B, 3, H, W) in [0, 1] -> one (B, C_k, h_k, w_k) a level. No gradient flows.
  virtual std::vector<Tensor> features(const Tensor& pixels) = 0;

  // Whether features come from the very forward pass of `target` that chefer (models/chefer.h) begins with.
  virtual bool gives_chefer(const Classifier& target) const { return false; }
  struct FeaturesAndChefer {
    std::vector<Tensor> levels;
    Tensor values;  // chefer_values()
  };
  // Both from that one pass, classes (B) int64; nothing where images of this size do not run that way.
  virtual std::optional<FeaturesAndChefer> features_and_chefer(const Tensor& pixels, const Tensor& classes) {
    return std::nullopt;
  }

 protected:
  EncoderInfo info_;
};

// The target must outlive the encoder.
std::unique_ptr<Encoder> encoder_from_target(Classifier& target, std::vector<std::string> levels);

// A classifier of its own as the encoder. info: name, sha256, mean and std.
std::unique_ptr<Encoder> encoder_from_classifier(std::shared_ptr<Classifier> network,
                                                 std::vector<std::string> levels, EncoderInfo info);

// Channels of each level, found by one forward of a black image.
std::vector<int> widths_of(Encoder& encoder, int image_size);

}  // namespace aha
