// A product that is being trained together with what stands around it: LayerNorm's gamma and beta before it, a scale of
// its outputs behind it (LayerScale, 1/sqrt(d)).
//
//   W' = diag(s) W diag(gamma),   b' = s (b + W beta)
//
// so that the way back sees xhat alone, and the gradients of norm and scale follow from dW' and db' without another pass
// over the activations:
//
//   dW = s (dW' gamma + db' beta^T),  db = s db',  dgamma = sum_n s_n dW'_n W_n,  dbeta = W^T (s db'),
//   ds = rowsum(dW' W gamma) + db' (b + W beta)
#pragma once

#include <vector>

#include "aha/kernels/core/buffer.h"

namespace aha {

// Pointers into the masters, float32; null = not there.
struct MasterProduct {
  int64_t outputs, inputs;
  const float *weight, *bias, *gamma, *beta;
  std::vector<float> scale;  // (outputs)
};

struct FoldedProduct {
  std::vector<float> weight;  // (outputs, inputs)
  AlignedBuffer<float> bias;
};
FoldedProduct folded(const MasterProduct& product);

// Gradients of the masters; null = not wanted. All but weight and bias begin as zeros.
struct MasterGradient {
  float *weight, *bias, *gamma, *beta, *scale;
};
// From dW' (outputs, inputs) and db' (outputs).
void unfold(const MasterProduct& product, const float* d_weight, const float* d_bias, const MasterGradient& out);

}  // namespace aha
