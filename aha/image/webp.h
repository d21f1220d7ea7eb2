// WebP through libwebp: lossy and lossless are read, of an animation the first frame on its canvas; lossy is
// written, for photos in pages.
#pragma once

#include <string>

#include "aha/image/codec.h"

namespace aha {

bool is_webp(Bytes bytes);
Decoded decode_webp(Bytes bytes, std::string_view name, const ReadOptions& options);

std::string webp_bytes(const Image& image, float quality = 80);  // quality: 0..100

}  // namespace aha
