// A frozen classifier on the fast kernels, as those who use it see it: logits, and the probabilities of
// perturbed images, both with their exact derivatives.
//
// Images are processed in chunks, one thread per chunk; a row's value does not depend on its chunk, so
// results are the same for any number of threads and any batch split. Weights never get gradients. What the
// networks are: frozen_vit.h, frozen_convnext.h. What one of them has to provide: frozen_engine.h.
#pragma once

#include <memory>

#include "aha/kernels/kernel_set.h"
#include "aha/nn/score.h"
#include "aha/tensor/tensor.h"

namespace aha {

struct FrozenBody;

class FrozenNetwork {
 public:
  virtual ~FrozenNetwork();

  // pixels (B, 3, H, W) in [0, 1] -> logits (B, C). One autograd function: differentiable in the pixels.
  Tensor logits(const Tensor& pixels);

  // How much of the forward pass logits() may keep for the backward pass, 2 GB unless said otherwise: what a
  // larger batch has beyond it is computed again. The numbers are the same.
  void keep_at_most(int64_t bytes);

  // Perturbed images that never exist as images: for image b and mask s, pixel x shows
  // reference + keep[b, s, region(x)] * (image - reference).
  struct Perturbed {
    Tensor pixels, reference;  // (B, 3, H, W)
    Tensor region;             // (H, W) int32, each in 0..K-1
    Tensor keep;               // (B, S, K)
    Tensor classes;            // (B) int64
    Score score = Score::kProbability;
  };
  struct Scores {
    Tensor scores;    // (B, S): of the image's class
    Tensor gradient;  // (B, S, K): its derivative by keep; undefined unless wanted
  };
  Scores perturbed_scores(const Perturbed& images, bool with_gradient);

  const KernelSet& kernels() const;
  int64_t packed_bytes() const;
  int64_t workspace_bytes() const;  // of one thread, at its largest so far

 protected:
  explicit FrozenNetwork(std::shared_ptr<FrozenBody> body);
  void check_pixels(const Tensor& pixels) const;
  Tensor checked_classes(const Tensor& classes, int64_t images) const;  // (B) int64, contiguous, on the CPU
  FrozenBody& body() const { return *body_; }

 private:
  std::shared_ptr<FrozenBody> body_;
};

}  // namespace aha
