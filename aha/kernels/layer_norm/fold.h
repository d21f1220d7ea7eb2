// What a frozen network lets us do once instead of for every image: the affine part of a layer norm and
// constant factors become part of the weights.
//
//   W (gamma * xhat + beta) + b = (W diag(gamma)) xhat + (b + W beta)
//
// A gradient with respect to xhat is then what the folded weights give on the way back. Sums in float64.
#pragma once

#include <span>

#include "aha/kernels/core/buffer.h"

namespace aha {

// weights: row-major (outputs, inputs); gamma, beta: `inputs` values. Both are changed in place.
void fold_layer_norm(std::span<float> weights, std::span<float> bias, std::span<const float> gamma,
                     std::span<const float> beta);

// Outputs first..first+count-1 times factor: 1 / sqrt(width) for the queries.
void scale_outputs(std::span<float> weights, std::span<float> bias, int64_t first, int64_t count,
                   float factor);

// Output n times factor[n]: the layer scale of networks that have one.
void scale_outputs(std::span<float> weights, std::span<float> bias, std::span<const float> factor);

// A bias as long as the products are wide: zeros up to a multiple of 32.
AlignedBuffer<float> padded_bias(std::span<const float> bias);

}  // namespace aha
