// WebP through libwebp: lossy and lossless; of an animation the first frame on its canvas.
#pragma once

#include "aha/image/codec.h"

namespace aha {

bool is_webp(Bytes bytes);
Decoded decode_webp(Bytes bytes, std::string_view name, const ReadOptions& options);

}  // namespace aha
