#include "aha/models/testing.h"

#include <cmath>

#include "aha/nn/state.h"

namespace aha::testing_nets {

TensorTable golden_table(const std::map<std::string, std::vector<int64_t>>& shapes) {
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

Tensor golden_input(std::vector<int64_t> shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return (torch::arange(n, at::kDouble) * 0.013 + 0.5).sin().to(at::kFloat).view(shape);
}

Vit tiny_vit() {
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

ConvNext tiny_convnext() {
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

}  // namespace aha::testing_nets
