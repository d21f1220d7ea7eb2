// AVIF through libavif: the image or the first frame, turned as the container says.
#pragma once

#include "aha/image/codec.h"

namespace aha {

bool is_avif(Bytes bytes);
Decoded decode_avif(Bytes bytes, std::string_view name, const ReadOptions& options);

}  // namespace aha
