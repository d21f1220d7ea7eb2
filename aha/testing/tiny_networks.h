// Small networks with seeded weights, numbers by a rule, and the checks that the tests of several networks
// share.
#pragma once

#include <gtest/gtest.h>

#include "aha/tensor/torch.h"

#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "aha/networks/convnext.h"
#include "aha/networks/vit.h"
#include "aha/nn/module_state.h"

namespace aha::testing_nets {

// Numbers by a rule: tensor k (rank of its name, bytewise) has at flat index i  base + amp * sin(0.37 i + 1.3
// k + 0.1), with base, amp = 0, 0.08; 1, 0.1 for one-dimensional weights; 0.5, 0.1 for layer scales.
inline TensorTable golden_table(const std::map<std::string, std::vector<int64_t>>& shapes) {
  TensorTable table;
  int k = 0;
  for (const auto& [name, shape] : shapes) {
    double base = 0, amp = 0.08;
    if (shape.size() == 1 && name.ends_with("weight")) base = 1, amp = 0.1;
    if (name.ends_with("gamma") || name.ends_with("layer_scale")) base = 0.5, amp = 0.1;
    int64_t n = 1;
    for (const int64_t size : shape) n *= size;
    std::vector<float> values(n);
    for (int64_t i = 0; i < n; ++i)
      values[i] = static_cast<float>(base + amp * std::sin(0.37 * i + 1.3 * k + 0.1));
    table.tensors[name] = view_from_floats(shape, std::move(values));
    ++k;
  }
  return table;
}

// sin(0.013 i + 0.5)
inline Tensor golden_input(std::vector<int64_t> shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return (torch::arange(n, at::kDouble) * 0.013 + 0.5).sin().to(at::kFloat).view(shape);
}

// Filled, frozen, in eval mode.
template <class Holder, class Config>
Holder network_from_weights(const CanonicalWeights& weights, const Config& config) {
  Holder network(config);
  network->load_weights(weights.table);
  return network;
}

// 8 pixels, patch 4, width 8, two blocks of two heads, three classes; seeded weights large enough to matter.
inline Vit vit_of_8_pixels() {
  VitConfig c;
  c.image_size = 8;
  c.patch = 4;
  c.width = 8;
  c.depth = 2;
  c.heads = 2;
  c.mlp_hidden = 16;
  c.classes = 3;
  Vit network(c);
  network->initialize(1);
  freeze(*network);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : network->parameters())
    if (parameter.dim() > 1) parameter.mul_(15);
  return network;
}

// 16 pixels, widths 4 and 8, one block each, three classes.
inline ConvNext convnext_of_two_blocks() {
  ConvNextConfig c;
  c.image_size = 16;
  c.stem_stride = 2;
  c.depths = {1, 1};
  c.widths = {4, 8};
  c.classes = 3;
  ConvNext network(c);
  network->initialize(1);
  freeze(*network);
  const torch::NoGradGuard no_grad;
  for (auto& item : network->named_parameters()) {
    if (item.value().dim() > 1) item.value().mul_(15);
    if (item.key().ends_with("gamma")) item.value().fill_(0.5);
  }
  return network;
}

// d f / d x against central differences at several places; f and x in double.
inline void expect_gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const auto variable = x.clone().requires_grad_();
  const auto gradient = torch::autograd::grad({f(variable)}, {variable})[0].flatten();
  const double scale = gradient.abs().max().item<double>();
  EXPECT_GT(scale, 0);
  // Central differences: error of order step^2 plus rounding of order 1e-16 / step.
  const double step = 1e-5;
  for (int64_t i = 0; i < x.numel(); i += std::max<int64_t>(1, x.numel() / 17)) {
    const auto moved = [&](double by) {
      auto there = x.clone();
      there.view(-1)[i] += by;
      return f(there).item<double>();
    };
    EXPECT_NEAR(gradient[i].item<double>(), (moved(step) - moved(-step)) / (2 * step), 1e-7 * (1 + scale))
        << "at " << i;
  }
}

}  // namespace aha::testing_nets
