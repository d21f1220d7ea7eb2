// RISE's random masks (Petsiuk et al. 2018), apart from the method so that they can be tested and reused.
#pragma once

#include "aha/base/rng.h"
#include "aha/tensor/tensor.h"

namespace aha {

// `count` masks (count, H, W) in [0, 1]: a cells x cells grid of 0/1 with P(1) = share, upsampled bilinearly
// to (cells + 1) * ceil(side / cells) and cut at a random offset below one cell. Takes its numbers from the
// rng in order: the same masks whatever the chunks they are asked in.
Tensor rise_masks(int count, int cells, double share, int64_t height, int64_t width, Rng& rng);

}  // namespace aha
