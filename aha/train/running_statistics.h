// BatchNorm's running statistics of a network as one vector, so that the groups of a step, on one worker or
// on several, can be averaged.
//
// They are set through variable_data: the backward pass of a group that has already run does not read them.
#pragma once

#include <torch/nn/module.h>

#include <vector>

#include "aha/tensor/tensor.h"

namespace aha {

class RunningStatistics {
 public:
  explicit RunningStatistics(torch::nn::Module& network) {
    for (const auto& item : network.named_buffers())
      (item.value().is_floating_point() ? buffers_ : counters_).push_back(item.value());
  }
  Tensor flat() const {
    std::vector<Tensor> parts;
    for (const auto& buffer : buffers_) parts.push_back(buffer.variable_data().flatten());
    return parts.empty() ? torch::empty({0}) : torch::cat(parts);
  }
  // Steps, not forwards: the groups of a step may be spread over workers.
  void set_count(int64_t steps) {
    for (auto& counter : counters_) counter.variable_data().fill_(steps);
  }
  void set(const Tensor& flat) {
    int64_t offset = 0;
    for (auto& buffer : buffers_) {
      buffer.variable_data().copy_(flat.narrow(0, offset, buffer.numel()).view(buffer.sizes()));
      offset += buffer.numel();
    }
  }

 private:
  std::vector<Tensor> buffers_, counters_;
};

}  // namespace aha
