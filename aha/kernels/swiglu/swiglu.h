// The gated activation of SwiGLU networks, on operands.
//
//   y = silu(a) b,  silu(a) = a sigma(a),  sigma(a) = 1 / (1 + e^-a)              [a | b]: the two halves of
//   a row of `gates` da = g b sigma(a) (1 + a (1 - sigma(a))),  db = g silu(a)                     g = dy
#pragma once

#include "aha/kernels/core/activations.h"

namespace aha {

struct KernelSet;

// The first `rows` rows. gates: (rows, 2 F), out: (rows, F), F a multiple of 32.
void swiglu(const KernelSet& kernels, int64_t rows, const Activations& gates, Activations& out);

// dout: (rows, F), dgates: (rows, 2 F).
void swiglu_backward(const KernelSet& kernels, int64_t rows, const Activations& gates,
                     const Activations& dout, Activations& dgates);

}  // namespace aha
