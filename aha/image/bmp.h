// BMP, uncompressed: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits a pixel. No library of Debian's reads
// this format alone.
#pragma once

#include "aha/image/codec.h"

namespace aha {

bool is_bmp(Bytes bytes);
Decoded decode_bmp(Bytes bytes, std::string_view name, const ReadOptions& options);

}  // namespace aha
