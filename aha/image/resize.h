// Resizing and cropping, bit-exact with Pillow's Image.resize and torchvision's Resize and CenterCrop on
// 8-bit images.
//
// Separable and antialiased: the filter is stretched by max(in/out, 1); horizontal pass first, then vertical;
// weights in 22-bit fixed point; each pass rounds, clips to 0..255 and stores 8 bits. A pass whose side does
// not change is skipped.
#pragma once

#include "aha/image/image.h"

namespace aha {

enum class Filter { kNearest, kBilinear, kBicubic };  // bicubic with a = -0.5

Image resized(const Image& image, int width, int height, Filter filter);

// Short side to `size`, long side to int(size * long / short), as torchvision's Resize(size).
Image resized_short_side(const Image& image, int size, Filter filter);

// torchvision's CenterCrop: offsets rounded half to even; a smaller image is padded with black first.
Image center_cropped(const Image& image, int size);

}  // namespace aha
