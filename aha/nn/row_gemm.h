// Linear layers and convolutions without a gradient, on the fast kernels: a row of the output (a pixel of a
// map) depends on its own inputs alone, bit for bit, not on how many others there are.
//
// libtorch 1.13 does not promise that: it has other 3x3 convolutions for one image on one thread than for
// several, other 1x1 convolutions for one, for 2 to 15 and for 16 and more, and OpenBLAS other GEMMs for
// few and for many rows. A map that an explainer gives alone would differ in its last bits from the same map
// in a batch. Weights are packed at each call.
//
// The decoder of a 32 x 32 image alone: 1.06 ms, with libtorch's convolutions 1.94.
#pragma once

#include "aha/kernels/kernel_set.h"
#include "aha/tensor/tensor.h"

namespace aha {

// x (..., K), weight (N, K), bias (N) or undefined = none -> (..., N), any K and N.
Tensor linear_by_rows(const KernelSet& kernels, const Tensor& x, const Tensor& weight,
                      const Tensor& bias = {});

// The convolution of a map that has its border already: x (B, C, H, W), weight (N, C, s, s)
// -> (B, N, (H - s) / stride + 1, (W - s) / stride + 1), channels-last. Float32 with every kernel set.
Tensor convolution_by_rows(const KernelSet& kernels, const Tensor& x, const Tensor& weight,
                           const Tensor& bias = {}, int64_t stride = 1);

// Each channel by itself, 3x3, stride 1: weight (C, 1, 3, 3).
Tensor depthwise_by_rows(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// The transposed convolution that makes s x s pixels of one: x (B, C, H, W), weight (C, N, s, s) -> (B, N, s
// H, s W), channels-last.
Tensor upsample_by_rows(const KernelSet& kernels, const Tensor& x, const Tensor& weight,
                        const Tensor& bias = {});

}  // namespace aha
