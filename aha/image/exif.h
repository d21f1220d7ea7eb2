// The orientation tag of EXIF (0x0112), the only one that changes pixels.
#pragma once

#include "aha/image/codec.h"

namespace aha {

// From an EXIF block (a TIFF header with its directories, after an optional "Exif\0\0"). Anything unreadable
// is 1: a damaged tag is no reason to refuse an image.
int orientation_from_exif(Bytes exif);

// The image as it is meant to be seen: 1 as it is, 2 mirrored, 3 turned by 180 degrees, 4 upside down, 5
// transposed, 6 turned by 90 degrees clockwise, 7 transposed over the other diagonal, 8 turned by 90 degrees
// counter-clockwise.
Image upright(Image image, int orientation);

}  // namespace aha
