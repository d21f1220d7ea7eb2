// What the engines on our own kernels (nn/frozen_network.h) answer, in the words of network.h.
#pragma once

#include "aha/networks/network.h"
#include "aha/nn/frozen_network.h"

namespace aha {

inline PerturbedProbabilities from_engine(FrozenNetwork& frozen, const PerturbedImages& images,
                                          bool with_gradient) {
  auto found = frozen.perturbed_probabilities(
      {images.pixels, images.reference, images.region, images.keep, images.classes}, with_gradient);
  return {found.probs, found.gradient};
}

}  // namespace aha
