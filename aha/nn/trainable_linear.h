// y = x W^T + b that is being trained, as one autograd function on the fast kernels: x, W and b get their
// gradient.
//
//   dx = dy W,   dW = dy^T x,   db = the sum of dy's rows            2 R K N flops each of y, dx, dW; R rows
//
// W is float32 and packed anew at each call; operands are rounded to the form of the kernel set, sums are
// float32. Any number of threads gives the same bits (chunks.h). Only what is asked for is computed.
//
// Memory: x itself is kept for the backward pass, which lays it out once more: the features of a frozen
// encoder are there anyway. A second derivative is not available.
//
// In float32 a draw with tuned OpenBLAS (docs/decisions/engine.md); it gains where there are tiles.
#pragma once

#include "aha/kernels/kernel_set.h"
#include "aha/tensor/tensor.h"

namespace aha {

// Both float32 on the CPU, K and N in multiples of 32.
bool trainable_linear_fits(const Tensor& x, const Tensor& weight);

// x (..., K), weight (N, K), bias (N) or undefined = none -> (..., N)
Tensor trainable_linear(const KernelSet& kernels, const Tensor& x, const Tensor& weight,
                        const Tensor& bias = {});

}  // namespace aha
