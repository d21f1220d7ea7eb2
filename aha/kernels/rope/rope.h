// Rotary positions: queries or keys turned by the place of their patch, and the gradient turned back.
//
//   rot(v)[i] = v[i] cos[i] - v[i + d/2] sin[i]              i < d/2
//   rot(v)[i] = v[i] cos[i] + v[i - d/2] sin[i]              i >= d/2
//
// The backward pass is the transposed matrix:
//
//   dv[i] = g[i] cos[i] + g[i + d/2] sin[i + d/2]            i < d/2
//   dv[i] = g[i] cos[i] - g[i - d/2] sin[i - d/2]            i >= d/2
#pragma once

#include "aha/kernels/core/heads.h"

namespace aha {

struct KernelSet;

// The tokens from first_token on are turned: class token and registers stand before them.
struct RopeAngles {
  const float *cos = nullptr, *sin = nullptr;  // (tokens - first_token, width); null = no rotary positions
  int64_t first_token = 0;
};

// Queries or keys of the first `images` images, in place.
void rotate_heads(const KernelSet& kernels, int64_t images, const RopeAngles& rope, Heads& heads);

// Their gradients as attention_backward leaves them, in place.
struct RopeGradient {
  Activations* gradient = nullptr;  // row image * tokens + token, the heads side by side from `column` on
  int64_t column = 0, images = 0, tokens = 0, heads = 0, width = 0;
};
void rotate_gradient(const KernelSet& kernels, const RopeAngles& rope, const RopeGradient& job);

}  // namespace aha
