// PNG through libspng: every color type and depth is read as Pillow reads it, 8-bit RGB and
// palettes are written.
#pragma once

#include <span>
#include <string>

#include "aha/image/codec.h"
#include "aha/image/colors.h"

namespace aha {

bool is_png(Bytes bytes);
Decoded decode_png(Bytes bytes, std::string_view name, const ReadOptions& options);

std::string png_bytes(const Image& image);
// One byte a pixel, an index into the palette (256 colors at most); as small as zlib makes it. For maps,
// whose colors are few. `alpha`: of each color, 255 = opaque; none = all opaque.
std::string palette_png_bytes(std::span<const uint8_t> indices, int width, int height,
                              std::span<const Color> palette, std::span<const uint8_t> alpha = {});
// Whole or not at all; an old file of that name is replaced.
void write_png(const std::string& path, const Image& image);

}  // namespace aha
