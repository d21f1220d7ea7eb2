// Text on images: DejaVu Sans, antialiased, kerned, in UTF-8.
//
// The two faces are part of the library (font_data.cpp), so that nothing has to be installed where it runs.
// A line of text has a box, text_width() x line_height(), and no ink leaves it. Safe from several threads.
#pragma once

#include <string>
#include <string_view>

#include "aha/image/colors.h"
#include "aha/image/image.h"

namespace aha {

struct TextStyle {
  double size = 13;  // of the em, in pixels; 4..512
  Color color = {0, 0, 0};
  bool bold = false;
};

enum class Align { kLeft, kCenter, kRight };  // which point of the box's upper edge is at (x, y)

// In pixels. The color does not matter.
int text_width(std::string_view text, const TextStyle& style);
int line_height(const TextStyle& style);

// Control characters and bytes that are no UTF-8 become U+FFFD, characters that the font lacks an empty box;
// characters after the 4096th are left out, and so is what falls outside the image.
void draw_text(Image& image, int x, int y, std::string_view text, const TextStyle& style,
               Align align = Align::kLeft);

// The text itself where it fits into `width` pixels, else its beginning and end with an ellipsis between
// them.
std::string shortened(std::string_view text, int width, const TextStyle& style);

}  // namespace aha
