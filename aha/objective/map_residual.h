// A map that changes by itself: a start, and on it a grid of numbers with bilinear values between them.
//
//   A = start + up(n)      n (grid, grid), 0 everywhere at first
//
// A step moves n along the gradient that a loss of A has left there. Cost beside the loss: one bilinear
// interpolation forward and back. Used by refinement (refine.h) and by the method `optimized`.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>

#include "aha/base/options.h"
#include "aha/tensor/tensor.h"

namespace aha {

struct MapResidualOptions {
  int grid = 0;  // numbers a side; 0 = 28 at 224 pixels, half the side up to 64 pixels
  // Scores of the soft order have a range of about 25. `gradient` and `momentum` divide the gradient by the
  // root of its mean square, so that all four take steps of about `lr`.
  double lr = 1;
  std::string optimizer = "adam";  // adam, sign, gradient, momentum (0.9)
};
Fields fields(MapResidualOptions& options);
int usual_residual_grid(int64_t side);

class MapResidual {
 public:
  // start (1, H, W) on the CPU or elsewhere; it is not changed.
  MapResidual(Tensor start, const MapResidualOptions& options);

  Tensor map() const;  // (1, H, W), differentiable in the numbers
  void zero_gradient() { numbers_.mutable_grad() = Tensor(); }
  void step();                                        // along the gradient
  const Tensor& numbers() const { return numbers_; }  // (1, 1, grid, grid)

 private:
  Tensor start_, numbers_;
  std::string optimizer_name_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

}  // namespace aha
