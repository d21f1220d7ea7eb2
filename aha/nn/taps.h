// Looking inside a network by name.
//
// A network's forward takes a Taps* (null = nothing is kept). The caller asks for names; while the forward
// runs, each block offers its tensors under their names and the asked ones are kept with their autograd
// history, so that torch::autograd::grad gives the gradient with respect to them.
//
//   Taps taps({"block.11.attention"});
//   auto logits = vit->forward(x, &taps);
//   auto attention = taps.at("block.11.attention");  // (B, heads, T, T)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aha/tensor/tensor.h"

namespace aha {

class Taps {
 public:
  explicit Taps(std::vector<std::string> wanted) : wanted_(std::move(wanted)) {}

  bool wants(std::string_view name) const;
  void offer(const std::string& name, const Tensor& tensor);
  const Tensor& at(const std::string& name) const;
  const std::vector<std::string>& wanted() const { return wanted_; }

  // Input error that lists what `network` has, unless all wanted names are among `available`.
  void check(const std::vector<std::string>& available, std::string_view network) const;

 private:
  std::vector<std::string> wanted_;
  std::map<std::string, Tensor> kept_;
};

}  // namespace aha
