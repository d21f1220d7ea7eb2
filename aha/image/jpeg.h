// JPEG through libjpeg-turbo with its default transform and upsampling: the pixels are Pillow's.
#pragma once

#include "aha/image/codec.h"

namespace aha {

bool is_jpeg(Bytes bytes);
Decoded decode_jpeg(Bytes bytes, std::string_view name, const ReadOptions& options);

}  // namespace aha
