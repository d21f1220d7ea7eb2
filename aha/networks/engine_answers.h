// What the engines on our own kernels (nn/frozen_network.h) answer, in the words of network.h.
#pragma once

#include "aha/networks/network.h"
#include "aha/nn/frozen_network.h"

namespace aha {

inline PerturbedScores from_engine(FrozenNetwork& frozen, const PerturbedImages& images, bool with_gradient) {
  auto found = frozen.perturbed_scores(
      {images.pixels, images.reference, images.region, images.keep, images.classes, images.score},
      with_gradient);
  return {found.scores, found.gradient};
}

}  // namespace aha
