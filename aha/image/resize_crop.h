// Resizing and cropping in one: center_cropped(resized_short_side(image, size, filter), crop), bit for bit,
// but only the pixels that the crop keeps are computed. A strip of 1 x 5000 pixels would be 256 x 1280000
// before it is cropped.
#pragma once

#include "aha/image/resize.h"

namespace aha {

Image resized_and_cropped(const Image& image, int size, int crop, Filter filter);

}  // namespace aha
