// A map of the target's own that an explainer may begin from: map = weight * prior + decoder. With few images
// to learn from, the decoder then corrects a good order instead of finding one.
//
// It is the order of the patches, not their values: 0 for the least important, 1 for the most, bilinear in
// between. chefer costs a forward and a backward pass of the target; logit-attribution (transformers) and cam
// (ConvNets, places of the last feature maps for patches) the forward pass alone, which is that of the
// explainer's own features where these are the target's.
#pragma once

#include <string>
#include <vector>

#include "aha/networks/classifier.h"

namespace aha {

inline const std::vector<std::string> kPriors = {"none", "chefer", "logit-attribution", "cam"};

// Passes of a prior beside its forward pass.
inline int prior_backwards(const std::string& name) {
  return name == "chefer" ? 1 : 0;
}
// How the patches of a transformer are valued.
TokenRelevance prior_rule(const std::string& name);

// Throws where this target has no such map.
void check_prior(const std::string& name, const Classifier& target);

// One value per patch, (B, n), row-major -> their order as a map, (B, H, W) in [0, 1]
Tensor map_of_order(const Tensor& values, int64_t height, int64_t width);

// The prior "cam" of features (B, C, h, w) that enter the pooling.
Tensor cam_prior(Classifier& target, const Tensor& features, const Tensor& classes, int64_t height,
                 int64_t width);

// pixels (B, 3, H, W), classes (B) -> (B, H, W) in [0, 1]. An image's order does not depend on its batch
// mates.
Tensor prior_map(const std::string& name, Classifier& target, const Tensor& pixels, const Tensor& classes);

}  // namespace aha
