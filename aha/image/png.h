// PNG through libspng: every color type and depth is read as Pillow reads it, 8-bit RGB is written.
#pragma once

#include <string>

#include "aha/image/codec.h"

namespace aha {

bool is_png(Bytes bytes);
Decoded decode_png(Bytes bytes, std::string_view name, const ReadOptions& options);

std::string png_bytes(const Image& image);
// Whole or not at all; an old file of that name is replaced.
void write_png(const std::string& path, const Image& image);

}  // namespace aha
