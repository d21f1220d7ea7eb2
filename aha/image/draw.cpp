#include "aha/image/draw.h"

#include <algorithm>
#include <cmath>

namespace aha {

Image plain_image(int width, int height, const Color& color) {
  Image image(width, height);
  fill_box(image, 0, 0, width, height, color);
  return image;
}

void fill_box(Image& image, int x, int y, int width, int height, const Color& color) {
  for (int j = std::max(0, y); j < std::min(image.height, y + height); ++j)
    for (int i = std::max(0, x); i < std::min(image.width, x + width); ++i)
      std::copy(color.begin(), color.end(), image.row(j) + static_cast<size_t>(i) * 3);
}

void paste(Image& image, int x, int y, const Image& tile) {
  const int left = std::max(0, -x), right = std::min(tile.width, image.width - x);
  if (left >= right) return;
  for (int j = std::max(0, -y); j < std::min(tile.height, image.height - y); ++j)
    std::copy_n(tile.row(j) + static_cast<size_t>(left) * 3, static_cast<size_t>(right - left) * 3,
                image.row(y + j) + static_cast<size_t>(x + left) * 3);
}

void draw_segments(Image& image, std::span<const Segment> segments, const LineStyle& style) {
  struct Rows {
    int left, top, right, bottom;
  };
  const double half = style.width / 2;
  const auto near = [&](const Segment& s) {  // the pixels that it may touch
    const auto low = [&](double u, double v) {
      return std::max(0, static_cast<int>(std::floor(std::min(u, v) - half - 1)));
    };
    const auto high = [&](double u, double v, int side) {
      return std::min(side, static_cast<int>(std::ceil(std::max(u, v) + half + 1)));
    };
    return Rows{low(s.a.x, s.b.x), low(s.a.y, s.b.y), high(s.a.x, s.b.x, image.width),
                high(s.a.y, s.b.y, image.height)};
  };
  Rows all{image.width, image.height, 0, 0};
  for (const Segment& segment : segments) {
    const Rows one = near(segment);
    all = {std::min(all.left, one.left), std::min(all.top, one.top), std::max(all.right, one.right),
           std::max(all.bottom, one.bottom)};
  }
  if (all.left >= all.right || all.top >= all.bottom) return;
  const int width = all.right - all.left;
  std::vector<float> covered(static_cast<size_t>(width) * (all.bottom - all.top));
  for (const Segment& segment : segments) {
    const Rows rows = near(segment);
    const auto& [a, b] = segment;
    const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
    for (int y = rows.top; y < rows.bottom; ++y)
      for (int x = rows.left; x < rows.right; ++x) {
        const double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
        const double t = length > 0 ? std::clamp((px * dx + py * dy) / length, 0.0, 1.0) : 0;
        const double cover =
            std::clamp(half + 0.5 - std::hypot(px - t * dx, py - t * dy), 0.0, std::min(1.0, style.width));
        float& most = covered[static_cast<size_t>(y - all.top) * width + (x - all.left)];
        most = std::max(most, static_cast<float>(cover));
      }
  }
  for (int y = all.top; y < all.bottom; ++y)
    for (int x = all.left; x < all.right; ++x)
      if (const float cover = covered[static_cast<size_t>(y - all.top) * width + (x - all.left)]; cover > 0)
        blend_pixel(image.row(y) + static_cast<size_t>(x) * 3, style.color, cover * style.opacity);
}

void draw_line(Image& image, std::span<const Point> points, const LineStyle& style) {
  std::vector<Segment> segments;
  for (size_t i = 0; i + 1 < points.size(); ++i) segments.push_back({points[i], points[i + 1]});
  draw_segments(image, segments, style);
}

void draw_frame(Image& image, int x, int y, int box_width, int box_height, int width, const Color& color) {
  fill_box(image, x, y, box_width, width, color);
  fill_box(image, x, y + box_height - width, box_width, width, color);
  fill_box(image, x, y, width, box_height, color);
  fill_box(image, x + box_width - width, y, width, box_height, color);
}

}  // namespace aha
