// Perturbed images that never exist as images, and what a network answers to them.
#pragma once

#include "aha/tensor/tensor.h"

namespace aha {

// What the answer for a class is measured as.
enum class Score { kProbability, kLogit };

// For image b and mask s, pixel x shows reference + keep[b, s, region(x)] * (image -
// reference).
struct PerturbedImages {
  Tensor pixels, reference;  // (B, 3, H, W) in [0, 1]
  Tensor region;             // (H, W) int32, each in 0..K-1
  Tensor keep;               // (B, S, K)
  Tensor classes;            // (B) int64
  Score score = Score::kProbability;
};
struct PerturbedScores {
  Tensor scores;    // (B, S): of the image's class
  Tensor gradient;  // (B, S, K): its derivative by keep; undefined unless wanted
};

}  // namespace aha
