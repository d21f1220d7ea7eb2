// Maps that somebody has as arrays, evaluated in memory: the figures of `aha eval` without its folder.
//
// The same sweeps, metrics and statistics as evaluate.h; metrics that explain again or look at annotations
// are refused, as there is neither a method nor a mask. Cost: that of `aha eval` without making the maps.
#pragma once

#include "aha/evaluate/protocol.h"
#include "aha/evaluate/summary.h"
#include "aha/networks/classifier.h"

namespace aha {

struct GivenMaps {
  std::string name;  // whose they are
  Tensor maps;       // (N, h, w) float32; another size than the input's is interpolated bilinearly
};

struct GivenMapsOptions {
  std::vector<std::string> metrics;  // empty = the protocol's
  std::vector<std::string> references;
  std::string protocol = "paper";
  ProtocolChanges changes;
  std::string score = "probability";
  double ci = 0.95;
};
Fields fields(GivenMapsOptions& options);

// maps (N, h, w) at another size, as the evaluation sees them.
Tensor maps_at_size(const Tensor& maps, int64_t H, int64_t W);

// pixels (N, 3, H, W) in [0, 1]; classes (N) int64; names, one for each image, seed what is random. The
// summary's images are the places 0..N-1 as text.
Summary evaluate_given_maps(Classifier& target, const Tensor& pixels, const Tensor& classes,
                            const std::vector<std::string>& names, const std::vector<GivenMaps>& given,
                            const GivenMapsOptions& options, const Context& context);

}  // namespace aha
