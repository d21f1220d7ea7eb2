// A network's forward pass as a part of an ONNX graph (onnx/builder.h), for images of one size: what
// `aha export` writes. One file for each family of networks (vit_onnx.cpp, ...).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aha/networks/classifier.h"
#include "aha/onnx/builder.h"

namespace aha {

struct OnnxForward {
  OnnxValue logits;                       // (B, C); without a head what it would read
  std::map<std::string, OnnxValue> taps;  // all that the network shows, and what its formulas need
};

// What a network has beside Network where it can be written as ONNX.
class OnnxSource {
 public:
  virtual ~OnnxSource() = default;
  // x (B, 3, size, size) normalized
  virtual OnnxForward write_onnx(OnnxBuilder& g, const OnnxValue& x) = 0;
  // What each patch of a transformer adds to the logit of its image's class, block by block, or each place of
  // a ConvNet's last feature maps, classes (B): (B, blocks or 1, n), row-major. The formulas are those of
  // attribution/logit_attribution.h and attribution/cam.h, for all images at once.
  virtual OnnxValue write_onnx_shares(OnnxBuilder& g, const OnnxForward& forward,
                                      const OnnxValue& classes) = 0;
};

// Input error where this classifier comes with a graph of its own (TorchScript, ONNX).
OnnxSource& onnx_source(Classifier& classifier);

// Normalization and order of channels: pixels (B, 3, size, size) in [0, 1] -> what the first layer gets.
OnnxValue network_input(OnnxBuilder& g, const OnnxValue& pixels, const InputSpec& spec);

// Taps as feature maps, as Classifier::features has them.
std::vector<OnnxValue> maps_from_taps(OnnxBuilder& g, const OnnxForward& forward,
                                      const std::vector<std::string>& names, int prefix_tokens);

}  // namespace aha
