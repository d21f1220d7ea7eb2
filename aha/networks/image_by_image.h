// An engine on libtorch. Its last bits differ with the number of images and of threads, so each image is
// computed by itself on one thread, unless a gradient is wanted.
#pragma once

#include "aha/networks/network.h"

namespace aha {

class ImageByImage : public Engine {
 public:
  Tensor logits(const Tensor& pixels) override;
  bool shows(const std::vector<std::string>&) const override { return true; }
  std::vector<Tensor> taps(const Tensor& pixels, const std::vector<std::string>& names) override;

 private:
  // pixels (B, 3, size, size) in [0, 1] -> what the network's forward gives. `taps` may be null.
  virtual Tensor run(const Tensor& pixels, Taps* taps) const = 0;
};

}  // namespace aha
