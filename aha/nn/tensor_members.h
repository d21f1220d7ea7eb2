// The tensors of a layer as named members and as a list, which autograd wants: each struct of weights names
// its members once.
#pragma once

#include <array>
#include <vector>

#include "aha/nn/plain_tensors.h"

namespace aha {

template <class Weights, size_t kCount>
struct TensorMembers {
  std::array<Tensor Weights::*, kCount> members;
  const char* layer;

  // Those that are defined, in their order.
  std::vector<Tensor> list(const Weights& weights) const {
    std::vector<Tensor> out;
    for (const auto member : members)
      if ((weights.*member).defined()) out.push_back(weights.*member);
    return out;
  }
  // Back from a list where none but the last ones are missing.
  Weights from_list(at::TensorList list) const {
    Weights out;
    for (size_t i = 0; i < list.size(); ++i) out.*members[i] = list[i];
    return out;
  }
  // As the kernels read them, their shapes checked.
  Weights plain(const Weights& weights, const std::array<std::vector<int64_t>, kCount>& shapes) const {
    Weights out;
    for (size_t i = 0; i < kCount; ++i)
      if (const Tensor& given = weights.*members[i]; given.defined())
        out.*members[i] = plain_weight(given, shapes[i], "weight " + std::to_string(i) + " of " + layer);
    return out;
  }
};

}  // namespace aha
