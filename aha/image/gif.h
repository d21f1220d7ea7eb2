// GIF through giflib: the first frame on its canvas, as Pillow shows it.
#pragma once

#include "aha/image/codec.h"

namespace aha {

bool is_gif(Bytes bytes);
Decoded decode_gif(Bytes bytes, std::string_view name, const ReadOptions& options);

}  // namespace aha
