// Small labels on images: a built-in font of 5 x 8 dots in cells of 6 x 9, printable ASCII; nothing has to
// be installed.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "aha/image/image.h"

namespace aha {

using Color = std::array<uint8_t, 3>;

constexpr int kCellWidth = 6, kCellHeight = 9;  // pixels at scale 1

struct TextOptions {
  int scale = 1;  // pixels per dot
  Color color = {255, 255, 255};
};

// The top left corner of the first cell at (x, y). What falls outside the image is left out; characters
// without a glyph become '?'.
void draw_text(Image& image, int x, int y, std::string_view text, const TextOptions& options = {});

inline int text_width(std::string_view text, int scale = 1) {
  return static_cast<int>(text.size()) * kCellWidth * scale;
}

}  // namespace aha
