#include "aha/nn/module_state.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/weights/names.h"

namespace aha {
namespace {

std::map<std::string, Tensor> state_of(const torch::nn::Module& network) {
  std::map<std::string, Tensor> state;
  for (const auto& item : network.named_parameters()) state[item.key()] = item.value();
  for (const auto& item : network.named_buffers()) state[item.key()] = item.value();
  return state;
}

}  // namespace

std::map<std::string, std::vector<int64_t>> state_shapes(const torch::nn::Module& network) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, tensor] : state_of(network)) shapes[name] = tensor.sizes().vec();
  return shapes;
}

void check_finite(const Tensor& tensor, std::string_view name, std::string_view what) {
  if (!tensor.is_floating_point()) return;
  if (std::isfinite(tensor.sum().item<double>())) return;  // reads the numbers once, without a copy
  const auto bad = tensor.isfinite().logical_not().sum().item<int64_t>();
  if (bad > 0)
    throw input_error("{}: expected finite weights, found {} of {} that are NaN or infinite in {}", what, bad,
                      tensor.numel(), name);
}

void load_state(torch::nn::Module& network, const TensorTable& table, std::string_view what) {
  check_keys(table, state_shapes(network), what);
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state_of(network))
    check_finite(tensor_from_view(table.at(name)), name, what);
  for (auto& [name, tensor] : state_of(network)) Tensor(tensor).copy_(tensor_from_view(table.at(name)));
}

TensorTable table_from_state(const torch::nn::Module& network) {
  TensorTable table;
  for (const auto& [name, tensor] : state_of(network)) table.tensors[name] = view_from_tensor(tensor);
  return table;
}

int64_t parameter_count(const torch::nn::Module& network) {
  int64_t count = 0;
  for (const auto& parameter : network.parameters()) count += parameter.numel();
  return count;
}

void freeze(torch::nn::Module& network) {
  network.eval();
  for (auto& parameter : network.parameters()) parameter.requires_grad_(false);
}

}  // namespace aha
