// A frozen classifier on the fast kernels, as those who use it see it: logits, and the probabilities of
// perturbed images, both with their exact derivatives.
//
// Images are processed in chunks, one thread per chunk; threads without a chunk take parts of what the others
// compute (base/shared_for.h): one image alone runs on all of them. A row's value depends neither on its
// chunk nor on the part, so results are the same for any number of threads and any batch split. Weights never
// get gradients. What the networks are: frozen_vit.h, frozen_convnext.h. What one of them has to provide:
// frozen_engine.h.
#pragma once

#include <memory>

#include "aha/kernels/kernel_set.h"
#include "aha/nn/perturbed_images.h"
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

  PerturbedScores perturbed_scores(const PerturbedImages& images, bool with_gradient);

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
