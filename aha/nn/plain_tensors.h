// Tensors as the kernels read them: contiguous float32 on the CPU, without a gradient.
#pragma once

#include <string_view>

#include "aha/tensor/tensor.h"

namespace aha {

Tensor plain_from(const Tensor& tensor);  // of any type and device; undefined stays so

// Input error unless the weight has this shape and is on the CPU.
Tensor plain_weight(const Tensor& weight, at::IntArrayRef shape, std::string_view what);

inline const float* floats(const Tensor& tensor) {
  return tensor.data_ptr<float>();
}

}  // namespace aha
