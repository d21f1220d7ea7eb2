// Back through a LayerNorm whose standard deviation is held fixed: it is then linear, so that what it reads
// can be split into parts that add up.
#pragma once

#include "aha/tensor/tensor.h"

namespace aha {

// Gradient (n, D) of what the norm gives, weight included -> of its input: (g - mean(g)) / std(input), input
// (n, D).
inline Tensor through_norm(const Tensor& g, const Tensor& input, double eps) {
  const Tensor deviation = (input.var(1, /*unbiased=*/false, /*keepdim=*/true) + eps).sqrt();
  return (g - g.mean(-1, true)) / deviation;
}

}  // namespace aha
