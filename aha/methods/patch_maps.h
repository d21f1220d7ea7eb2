// What is done to maps after a method has its raw values: to pixels, to [0, 1], smoother.
#pragma once

#include "aha/tensor/tensor.h"

namespace aha {

// One value per patch, row-major (B, n), n a square -> (B, g, g).
Tensor grid_from_patches(const Tensor& values);

// (B, g, g) -> (B, H, W): bilinear, half-pixel centers, edges repeated.
Tensor upsampled(const Tensor& grid, int64_t height, int64_t width);

// Values of all tokens (B, T), `prefix` of them before the patches -> maps of the size of pixels (B, 3, H,
// W).
Tensor map_of_tokens(const Tensor& values, int64_t prefix, const Tensor& pixels);

// (M - min) / (max - min) per image over the last two axes. A constant map becomes zeros: it ranks nothing,
// and who evaluates it can see that.
Tensor min_max(const Tensor& maps);

// What the CAM family does at the end: negative values to 0, (M - min) / (max + 1e-7) of the difference,
// upsampled, and the same scaling again.
Tensor cam_scaled(const Tensor& raw);                                   // (B, h, w)
Tensor cam_finished(const Tensor& raw, int64_t height, int64_t width);  // (B, H, W)

// Gaussian of `sigma_px`, cut at 3 sigma, edges mirrored (without repeating the edge pixel).
Tensor blurred_maps(const Tensor& maps, double sigma_px);

}  // namespace aha
