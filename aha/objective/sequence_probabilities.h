// The probability of a class while regions of an image are removed or inserted, with its exact derivative by
// the masks.
//
//   x[b,s]    = reference_b + keep[b,s,region] * (image_b - reference_b)
//   p[b,s]    = softmax(f(x[b,s]))[class_b]
//   deletion  : keep = 1 - mask        insertion : keep = mask
//
// p[b,s] depends on keep[b,s,:] alone, so the whole Jacobian is one row of K numbers per perturbed image. It
// is computed in the forward, a few images at a time, and the backward is one multiplication: memory does not
// grow with S, and no graph of the target outlives its piece of work.
//
// Classifier::perturbed_scores computes both: on the fast engine, which never makes the perturbed
// images, or through autograd. Cost: B * 2S forwards and as many backwards.
#pragma once

#include "aha/networks/classifier.h"

namespace aha {

struct SequenceImages {
  Tensor pixels, reference;  // (B, 3, H, W) in [0, 1]
  Tensor region;             // (H, W) int32: the region of a pixel, in 0..K-1
  Tensor classes;            // (B) int64
};

struct SequenceProbabilities {
  Tensor deletion, insertion;  // (B, S), differentiable in the masks
};

// masks (B, S, K): how much of each region belongs to the top k
SequenceProbabilities sequence_probabilities(Classifier& target, const SequenceImages& images,
                                             const Tensor& masks);

}  // namespace aha
