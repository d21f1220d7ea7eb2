// The terms of the loss, each by its own name (paper, section 3.1 and 3.2).
//
//   loss = lambda_del * deletion_term - lambda_ins * insertion_term + lambda_reg * smoothness_term
#pragma once

#include "aha/tensor/tensor.h"

namespace aha {

// mean over k of f(I_del^(k))_t: probabilities (B, S) while the most important regions are removed -> scalar,
// in [0, 1]. Low is good.
Tensor deletion_term(const Tensor& probs);

// mean over k of f(I_ins^(k))_t: probabilities (B, S) while the most important regions are inserted ->
// scalar, in [0, 1]. High is good.
Tensor insertion_term(const Tensor& probs);

// mean((A - avgfilter(A))^2) over maps (B, H, W): isolated peaks cost, ramps do not. The filter is `window`
// x `window` (odd), edges repeated.
Tensor smoothness_term(const Tensor& maps, int window = 3);

}  // namespace aha
