// The explainer Phi(I, t): frozen encoder, trained decoder. One forward pass gives the map of an image and a
// class.
//
//   Explainer explainer(std::move(encoder), options);
//   auto map = explainer.map(pixels, classes);              // (B, H, W), higher = more important
//
// features() does not depend on the decoder, and its levels not on the class: training several decoders and
// refining compute it once.
#pragma once

#include <memory>
#include <mutex>

#include "aha/explainer/dpt.h"
#include "aha/explainer/encoder.h"

namespace aha {

struct Features {
  std::vector<Tensor> levels;  // (B, C_k, h_k, w_k)
  int64_t height = 0, width = 0;
  Tensor prior;        // (B, H, W) where the decoder's options have one
  Tensor prior_parts;  // (B, N, h, w) where they ask for them
};

class Explainer {
 public:
  // The target is only needed for a prior and must outlive the explainer then.
  Explainer(std::shared_ptr<Encoder> encoder, DecoderOptions options, Classifier* target = nullptr);

  Features features(const Tensor& pixels,
                    const Tensor& classes);  // pixels (B, 3, H, W) in [0, 1], classes (B) int64
  Tensor decode(const Features& features, const Tensor& classes);  // -> (B, H, W)
  Tensor map(const Tensor& pixels, const Tensor& classes) {
    return decode(features(pixels, classes), classes);
  }

  // The same decoder on another target: where features or prior are the target's own they become this one's.
  // An encoder of its own stays. The target must outlive what is returned.
  std::unique_ptr<Explainer> on_target(Classifier& other) const;

  // Whether features and prior come from one forward pass of the target.
  bool shares_forward() const;

  // From now on the map is weight * prior + decoder.
  void add_prior(const std::string& name, double weight);

  // The decoder once more, in eval mode, to be trained on one image and thrown away. Safe from several
  // threads. Those thrown away are kept: to make one draws random weights first, which takes 4 ms for 0.3 M
  // parameters; to make it like the decoder again 0.2 (vit4's, best of 30).
  std::shared_ptr<DecoderImpl> decoder_copy();

  Decoder& decoder() { return decoder_; }
  Encoder& encoder() { return *encoder_; }

 private:
  struct Spares {
    std::mutex guard;
    std::vector<std::shared_ptr<DecoderImpl>> list;
  };

  std::shared_ptr<Encoder> encoder_;
  Classifier* target_;
  Decoder decoder_;
  std::shared_ptr<Spares> spares_ = std::make_shared<Spares>();
};

}  // namespace aha
