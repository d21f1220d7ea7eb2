// All trainable numbers of a network in one vector, their gradients in another.
//
// The network's parameters become views into `values`, their gradients views into `gradients`. An optimizer
// step, a moving average, a clip, an all-reduce and a checkpoint are then each one operation on one long
// vector, in one fixed order. Matrices and filters (two or more axes) come first: they decay; tokens, tables,
// biases, norms and scales follow: they do not.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "aha/tensor/tensor.h"

namespace aha {

class FlatParameters {
 public:
  // Every parameter of the network that requires a gradient. The network must outlive this, and keep its
  // device.
  explicit FlatParameters(torch::nn::Module& network);

  Tensor& values() { return values_; }        // (P)
  Tensor& gradients() { return gradients_; }  // (P)
  int64_t size() const { return values_.numel(); }
  int64_t decayed() const { return decayed_; }  // the first so many decay

  struct Part {
    std::string name;
    int64_t offset, count;
    std::vector<int64_t> shape;
  };
  const std::vector<Part>& parts() const { return parts_; }  // in the vectors' order

  void zero_gradients();
  double gradient_norm() const;
  // Scales the gradients to `norm` where they are longer.
  void clip(double norm);
  // Name of the parameter that holds the first number that is not finite, of the values or the gradients;
  // empty where all are finite.
  std::string first_not_finite(const Tensor& flat) const;

 private:
  std::vector<Part> parts_;
  std::vector<Tensor> parameters_;
  Tensor values_, gradients_;
  int64_t decayed_ = 0;
};

}  // namespace aha
