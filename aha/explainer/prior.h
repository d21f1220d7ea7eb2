// A map of the target's own that an explainer may begin from: map = weight * prior + decoder. With few images
// to learn from, the decoder then corrects a good order instead of finding one.
//
// It is the order of the patches, not their values: 0 for the least important, 1 for the most, bilinear in
// between. chefer costs a forward and a backward pass of the target; logit-attribution (transformers) and cam
// (ConvNets, places of the last feature maps for patches) the forward pass alone, which is that of the
// explainer's own features where these are the target's.
//
// The two that need no backward pass have parts, too: what each block adds (logit-attribution), or the values
// themselves (cam). They can be given to the decoder as channels that know the class.
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

// How many parts a prior has on this target; 0 = it has none.
int prior_parts(const std::string& name, const Classifier& target);

// (B, N, n), n places row-major -> (B, N, h, w): each part divided by its own deviation over the places, and
// by a tenth of their sum's, so that a part which says next to nothing stays small.
Tensor scaled_parts(const Tensor& values);

struct PriorMaps {
  Tensor order;  // (B, H, W) in [0, 1]
  Tensor parts;  // (B, N, h, w) where they were asked for
};

// Throws where this target has no such map.
void check_prior(const std::string& name, const Classifier& target);

// One value per patch, (B, n), row-major -> their order as a map, (B, H, W) in [0, 1]
Tensor map_of_order(const Tensor& values, int64_t height, int64_t width);

// The prior "cam" of features (B, C, h, w) that enter the pooling.
PriorMaps cam_prior(Classifier& target, const Tensor& features, const Tensor& classes, int64_t height,
                    int64_t width);

// pixels (B, 3, H, W), classes (B). An image's maps do not depend on its batch mates.
PriorMaps prior_maps(const std::string& name, Classifier& target, const Tensor& pixels, const Tensor& classes,
                     bool with_parts = false);

}  // namespace aha
