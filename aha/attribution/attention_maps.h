// The attention family as plain tensor functions.
//
// A_l (B, heads, T, T) is the attention of block l after its softmax, rows = queries; G_l = d y_t / d A_l;
// token 0 is the class token and `prefix` tokens come before the patches. Every function gives one value a
// patch, (B, n), before any scaling.
#pragma once

#include <vector>

#include "aha/tensor/tensor.h"

namespace aha {

// Rollout (Abnar and Zuidema 2020): B_l = rownorm(mean_heads A_l + I), row 0 of B_{L-1} ... B_first.
Tensor rollout_patches(const std::vector<Tensor>& attention, int first, int64_t prefix);

// Generic attribution (Chefer et al., ICCV 2021): R = I, then R += relu(mean_heads(G_l * A_l)) R for every
// block; row 0 of R.
Tensor chefer_patches(const std::vector<Tensor>& attention, const std::vector<Tensor>& gradients,
                      int64_t prefix);

// Grad-CAM on an attention: relu(mean_heads(a * q)) of the class row. `pooled` averages q over the patches of
// a head first.
Tensor attention_cam_patches(const Tensor& attention, const Tensor& gradient, int64_t prefix, bool pooled);

// Integrated attention gradient: mean_heads relu(G), G averaged over the path before; its class row.
Tensor attention_gradient_patches(const Tensor& path_mean_gradient, int64_t prefix);

// LeGrad's share of one layer: relu(q) averaged over heads and queries.
Tensor legrad_patches(const Tensor& gradient, int64_t prefix);

}  // namespace aha
