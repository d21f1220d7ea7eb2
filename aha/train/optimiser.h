// One step on the flat vector of parameters.
//
//   adamw   m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  p -= lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t))
//   + 1e-8) + decay p) sgd     m = momentum m + g + decay p;  p -= lr (g + decay p + momentum m) Nesterov's
//   form
//
// Decay touches only the first FlatParameters::decayed() numbers. The same numbers as libtorch's own
// optimisers; written here because their state has to go through a checkpoint bit by bit and because one
// vector takes one pass instead of hundreds.
#pragma once

#include <string>
#include <vector>

#include "aha/base/options.h"
#include "aha/train/flat_parameters.h"

namespace aha {

struct OptimiserOptions {
  std::string kind = "adamw";
  double weight_decay = 0.05;
  double beta1 = 0.9, beta2 = 0.999;  // adamw
  double momentum = 0.9;              // sgd
};
Fields fields(OptimiserOptions& options);

class Optimiser {
 public:
  Optimiser(FlatParameters& parameters, OptimiserOptions options);

  // `step` counts from 0.
  void step(double learning_rate, int64_t step);

  // The moments, to save and to fill.
  std::vector<std::pair<std::string, Tensor>> state() const;

 private:
  FlatParameters& parameters_;
  OptimiserOptions options_;
  Tensor first_, second_;  // (P) each; second_ only for adamw
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
