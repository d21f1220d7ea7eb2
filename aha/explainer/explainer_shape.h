// A fresh explainer for a target: which features it sees, how large its decoder is, what it begins from.
//
// The encoder's levels of one size (a transformer's) become a pyramid, those of a ConvNet are one already.
// What is left open (levels, scales, channels, embedding) follows the encoder's depth, the size of the images
// and the target's own head weights.
#pragma once

#include "aha/explainer/explainer.h"

namespace aha {

struct ExplainerShape {
  std::string encoder =
      "target";  // "target" (its own activations), or a model spec (dinov3_vitl16:FILE, a directory)
  std::vector<std::string>
      levels;  // taps, finest first, a level may join several with '+'; empty = four usual ones of this depth
  std::vector<int> scales;              // of the levels (explainer/dpt.h); empty = by the size of the images
  int channels = 0, top = 0, head = 0;  // of the decoder; 0 = by the size of the images
  int embedding = 0;      // width of the class embedding; 0 = the target's own rows where they are known
  bool class_dot = true;  // token times class as a channel of each level (explainer/dpt.h)
  std::string output =
      "none";  // activation of the map; none = unbounded, which the soft order needs to become sharp
  std::string padding = "replicate";  // zeros leave a dim rim
  std::string prior = "none";  // a map of the target's own to begin from (explainer/prior.h), for few images
  double prior_weight = 25;
  bool prior_parts = false;  // the decoder sees what the prior is the sum of
};
Fields fields(ExplainerShape& shape);

// A fresh explainer with seeded weights. The target must outlive it where the encoder is the target.
std::unique_ptr<Explainer> make_explainer(Classifier& target, const ExplainerShape& shape,
                                          const Context& context);

}  // namespace aha
