// Shapes on images: filled boxes, images on images, lines without jagged edges. What falls outside the image
// is left out.
#pragma once

#include <span>
#include <vector>

#include "aha/image/colors.h"
#include "aha/image/image.h"

namespace aha {

constexpr Color kPaper = {255, 255, 255};

Image plain_image(int width, int height, const Color& color = kPaper);

void fill_box(Image& image, int x, int y, int width, int height, const Color& color);

void paste(Image& image, int x, int y, const Image& tile);

// In pixels; the center of the upper left pixel is (0.5, 0.5).
struct Point {
  double x = 0, y = 0;
};
struct Segment {
  Point a, b;
};

struct LineStyle {
  double width = 1;
  Color color = {0, 0, 0};
  double opacity = 1;
};

// All segments as one shape with round ends: where two meet or cross, nothing is painted twice. Cost: the
// area of the segments' boxes.
void draw_segments(Image& image, std::span<const Segment> segments, const LineStyle& style);
void draw_line(Image& image, std::span<const Point> points, const LineStyle& style);

// The inner border of a box, `width` pixels wide.
void draw_frame(Image& image, int x, int y, int box_width, int box_height, int width, const Color& color);

// Share of `color` over a pixel.
inline void blend_pixel(uint8_t* pixel, const Color& color, double share) {
  for (int c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>(pixel[c] + share * (color[c] - pixel[c]) + 0.5);
}

}  // namespace aha
