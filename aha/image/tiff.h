// TIFF through libtiff: the first page, eight bits a color.
#pragma once

#include "aha/image/codec.h"

namespace aha {

bool is_tiff(Bytes bytes);
Decoded decode_tiff(Bytes bytes, std::string_view name, const ReadOptions& options);

}  // namespace aha
