// Layer normalization without its affine part, which nn/folded_linear.h moves into the weights that follow.
//
//   mean = sum(x) / D,  rstd = 1 / sqrt(sum((x - mean)^2) / D + epsilon),  xhat = (x - mean) * rstd
//
// and back, from g = d loss / d xhat, added to what the residual already brought:
//
//   dx += rstd * (g - sum(g) / D - xhat * sum(g * xhat) / D)
#pragma once

#include "aha/kernels/core/activations.h"

namespace aha {

struct KernelSet;

// x: `rows` rows of D = xhat.columns() floats, a multiple of 32, `stride` apart. rstd: one per row; null =
// not wanted.
void layer_norm(const KernelSet& kernels, int64_t rows, const float* x, int64_t stride, float epsilon,
                Activations& xhat, float* rstd);

struct LayerNormGradient {
  const float* gradient = nullptr;  // g, rows gradient_stride apart
  int64_t gradient_stride = 0;
  const Activations* xhat = nullptr;
  const float* rstd = nullptr;
  float* dx = nullptr;  // added to, rows dx_stride apart
  int64_t dx_stride = 0;
  Activations* dx_operand = nullptr;  // the new dx as the operand of the next GEMM; null = not wanted
};
void layer_norm_backward(const KernelSet& kernels, int64_t rows, const LayerNormGradient& job);

}  // namespace aha
