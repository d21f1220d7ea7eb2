// Rotary positions: queries or keys turned by the place of their patch, in place.
//
//   rot(v)[i] = v[i] cos[i] - v[i + d/2] sin[i]              i < d/2
//   rot(v)[i] = v[i] cos[i] + v[i - d/2] sin[i]              i >= d/2
#pragma once

#include "aha/kernels/core/heads.h"

namespace aha {

struct KernelSet;

// The tokens from `first_token` on of the first `images` images are turned; cos and sin: (tokens - first_token, width).
void rotate_heads(const KernelSet& kernels, int64_t images, int64_t first_token, const float* cos, const float* sin, Heads& heads);

}  // namespace aha
