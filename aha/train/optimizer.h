// One step on the flat vector of parameters.
//
//   adamw   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//           p -= lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + 1e-8) + decay p)
//   muon    inner matrices: m = b m + (1 - b) g;  O = orthogonalized((1 - b) g + b m)
//           p -= lr (0.2 sqrt(longer side) O + decay p): the size of an adamw step, so that one rate serves
//           both everything else as adamw
//   sgd     m = momentum m + g + decay p;  p -= lr (g + decay p + momentum m): Nesterov's form
//
// Muon: Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024; the size of its step:
// Liu et al., "Muon is scalable for LLM training", 2025.
//
// Decay touches only the first FlatParameters::decayed() numbers. The same numbers as libtorch's own
// optimizers; written here because their state has to go through a checkpoint bit by bit and because one
// vector takes one pass instead of hundreds.
#pragma once

#include <string>
#include <vector>

#include "aha/base/options.h"
#include "aha/train/flat_parameters.h"

namespace aha {

struct OptimizerOptions {
  std::string kind = "adamw";
  double weight_decay = 0.05;
  double beta1 = 0.9, beta2 = 0.999;  // adamw
  double momentum = 0.9;              // sgd, muon
};
Fields fields(OptimizerOptions& options);

// About U V^T of matrix = U S V^T, by five steps of a Newton-Schulz iteration whose quintic is tuned for
// speed: the singular values end between 0.6 and 1.3 instead of at 1.
Tensor orthogonalized(const Tensor& matrix);

class Optimizer {
 public:
  Optimizer(FlatParameters& parameters, OptimizerOptions options);

  // `step` counts from 0.
  void step(double learning_rate, int64_t step);

  // The moments, to save and to fill.
  std::vector<std::pair<std::string, Tensor>> state() const;

 private:
  void adam(Tensor values, const Tensor& gradients, Tensor first, Tensor second, double learning_rate,
            int64_t step) const;

  FlatParameters& parameters_;
  OptimizerOptions options_;
  Tensor first_, second_;  // (P) each; second_ not for sgd
};

// Exponential moving average of the parameters: a = d a + (1 - d) p with d = min(decay, (1 + t) / (10 + t)),
// so that the random start is soon forgotten.
class MovingAverage {
 public:
  MovingAverage(FlatParameters& parameters, double decay);
  void update(int64_t step);
  Tensor& values() { return values_; }

  // The average stands in the network as long as the object lives.
  class Shown {
   public:
    explicit Shown(MovingAverage& average);
    ~Shown();
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

   private:
    MovingAverage& average_;
    Tensor trained_;
  };

 private:
  FlatParameters& parameters_;
  double decay_;
  Tensor values_;  // (P)
};

}  // namespace aha
