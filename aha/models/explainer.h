// The explainer Phi(I, t): frozen encoder, trained decoder. One forward pass gives the map of an image and a
// class.
//
//   Explainer explainer(std::move(encoder), options);
//   auto map = explainer.map(pixels, classes);              // (B, H, W), higher = more important
//
// features() does not depend on the class nor on the decoder: training several decoders, asking for several
// classes and refining compute it once.
#pragma once

#include <memory>
#include <mutex>

#include "aha/models/dpt.h"
#include "aha/models/encoder.h"

namespace aha {

struct Features {
  std::vector<Tensor> levels;  // (B, C_k, h_k, w_k)
  int64_t height = 0, width = 0;
};

class Explainer {
 public:
  Explainer(std::shared_ptr<Encoder> encoder, DecoderOptions options);

  Features features(const Tensor& pixels);                         // pixels (B, 3, H, W) in [0, 1]
  Tensor decode(const Features& features, const Tensor& classes);  // classes (B) int64 -> (B, H, W)
  Tensor map(const Tensor& pixels, const Tensor& classes) { return decode(features(pixels), classes); }

  // The decoder once more, in eval mode, to be trained on one image and thrown away. Safe from several threads. Those thrown away are kept: to make one
  // draws random weights first, which takes 4 ms for 0.3 M parameters; to make it like the decoder again 0.1.
  std::shared_ptr<DecoderImpl> decoder_copy();

  Decoder& decoder() { return decoder_; }
  Encoder& encoder() { return *encoder_; }

 private:
  struct Spares {
    std::mutex guard;
    std::vector<std::shared_ptr<DecoderImpl>> list;
  };

  std::shared_ptr<Encoder> encoder_;
  Decoder decoder_;
  std::shared_ptr<Spares> spares_ = std::make_shared<Spares>();
};

}  // namespace aha
