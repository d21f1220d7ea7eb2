#include "aha/nn/plain_tensors.h"

#include "aha/base/error.h"

namespace aha {

Tensor plain_from(const Tensor& tensor) {
  return tensor.defined() ? tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous() : Tensor();
}

Tensor plain_weight(const Tensor& weight, at::IntArrayRef shape, std::string_view what) {
  if (weight.sizes() != shape || !weight.is_cpu())
    throw input_error("{}: expected shape {} on the CPU, found {} on {}", what, fmt::join(shape, " x "),
                      fmt::join(weight.sizes(), " x "), weight.device().str());
  return plain_from(weight);
}

}  // namespace aha
