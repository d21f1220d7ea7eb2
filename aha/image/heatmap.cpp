#include "aha/image/heatmap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "aha/base/error.h"
#include "aha/image/draw.h"

namespace aha {
namespace {

constexpr Color kOutside = {128, 128, 128};
constexpr double kTransparentBelow = 0.2, kOpaqueFrom = 0.9;  // levels

void check_map(std::span<const float> map, int width, int height) {
  if (width < 1 || height < 1 || map.size() != static_cast<size_t>(width) * static_cast<size_t>(height))
    throw input_error("heat map: expected {} x {} values, found {}", width, height, map.size());
}

std::vector<float> levels_by_value(std::span<const float> map) {
  const HeatRange range = heat_range(map);
  std::vector<float> sorted(map.begin(), map.end());
  const double last = static_cast<double>(sorted.size() - 1);
  const auto place = [&](double at) {
    const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(at);
    std::nth_element(sorted.begin(), nth, sorted.end());
    return static_cast<double>(*nth);
  };
  double low = place(std::floor(0.01 * last)), high = place(std::ceil(0.99 * last));
  if (low == high) low = range.low, high = range.high;
  std::vector<float> levels(map.size(), 0.5f);
  if (high > low)
    for (size_t i = 0; i < map.size(); ++i)
      levels[i] = static_cast<float>(std::clamp((map[i] - low) / (high - low), 0.0, 1.0));
  return levels;
}

// Equal values get the level of their mean rank.
std::vector<float> levels_by_rank(std::span<const float> map) {
  heat_range(map);  // refuses values that have no rank
  std::vector<uint32_t> order(map.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return map[a] < map[b]; });
  std::vector<float> levels(map.size());
  const double last = static_cast<double>(map.size()) - 1;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && map[order[end]] == map[order[begin]]) ++end;
    const double rank = 0.5 * static_cast<double>(begin + end - 1);
    const auto level = static_cast<float>(last > 0 ? rank / last : 0.5);
    for (size_t i = begin; i < end; ++i) levels[order[i]] = level;
  }
  return levels;
}

// Where an output position falls between two input centers.
struct Between {
  int left, right;
  float share;  // of the right one
  bool outside;
};

// `in` centers spread over from..to of the output.
std::vector<Between> positions(int in, int out, double from, double to) {
  std::vector<Between> found(out);
  for (int i = 0; i < out; ++i) {
    const double along = (i + 0.5 - from) / (to - from);
    const double at = std::clamp(along * in - 0.5, 0.0, in - 1.0);
    const int left = static_cast<int>(at);
    found[i] = {left, std::min(left + 1, in - 1), static_cast<float>(at - left), along < 0 || along > 1};
  }
  return found;
}

// Levels at the size of an image; below 0 outside the part.
struct PlacedLevels {
  int width, height;
  std::vector<float> values;
};

PlacedLevels placed(std::span<const float> levels, int width, int height, int to_width, int to_height,
                    const Box& part) {
  const auto columns = positions(width, to_width, part.left, part.right),
             rows = positions(height, to_height, part.top, part.bottom);
  PlacedLevels out{to_width, to_height, {}};
  out.values.reserve(static_cast<size_t>(to_width) * to_height);
  for (const Between& row : rows) {
    const float *upper = levels.data() + static_cast<size_t>(row.left) * width,
                *lower = levels.data() + static_cast<size_t>(row.right) * width;
    for (const Between& column : columns) {
      const float top = std::lerp(upper[column.left], upper[column.right], column.share);
      const float bottom = std::lerp(lower[column.left], lower[column.right], column.share);
      out.values.push_back(row.outside || column.outside ? -1 : std::lerp(top, bottom, row.share));
    }
  }
  return out;
}

const Color& color_at(const ColorTable& table, float level) {
  return table[static_cast<size_t>(std::lround(level * 255))];
}

Image colored(const PlacedLevels& levels, const HeatOptions& options) {
  const ColorTable& table = color_table(color_map_from_text(options.colors));
  Image image(levels.width, levels.height);
  for (size_t i = 0; i < levels.values.size(); ++i) {
    const Color& color = levels.values[i] < 0 ? kOutside : color_at(table, levels.values[i]);
    std::memcpy(image.rgb.data() + i * 3, color.data(), 3);
  }
  return image;
}

// Where the levels cross a height, between four pixel centers each (marching squares).
std::vector<Segment> crossings(const PlacedLevels& levels, float height) {
  std::vector<Segment> out;
  const auto at = [&](int x, int y) { return levels.values[static_cast<size_t>(y) * levels.width + x]; };
  for (int y = 0; y + 1 < levels.height; ++y)
    for (int x = 0; x + 1 < levels.width; ++x) {
      const float corners[] = {at(x, y), at(x + 1, y), at(x + 1, y + 1), at(x, y + 1)};
      if (std::ranges::min(corners) < 0) continue;
      constexpr double kX[] = {0.5, 1.5, 1.5, 0.5}, kY[] = {0.5, 0.5, 1.5, 1.5};
      Point found[4];
      int n = 0;
      for (int i = 0; i < 4; ++i) {
        const int j = (i + 1) % 4;
        if ((corners[i] >= height) == (corners[j] >= height)) continue;
        const double share = (height - corners[i]) / (corners[j] - corners[i]);
        found[n++] = {x + std::lerp(kX[i], kX[j], share), y + std::lerp(kY[i], kY[j], share)};
      }
      for (int i = 0; i + 1 < n; i += 2) out.push_back({found[i], found[i + 1]});
    }
  return out;
}

// The level that this share of the map's pixels reaches.
float level_of_top(std::vector<float> levels, double share) {
  const auto nth =
      levels.begin() + static_cast<std::ptrdiff_t>((1 - share) * static_cast<double>(levels.size()));
  std::nth_element(levels.begin(), nth, levels.end());
  return *nth;
}

// A pixel of a common screen at the sizes of a page, more on larger images.
double line_unit(const Image& image) {
  return std::max(1.0, std::min(image.width, image.height) / 450.0);
}

void draw_contours(Image& image, const PlacedLevels& placed, const std::vector<float>& levels) {
  struct Contour {
    double share, width;
  };
  const double unit = line_unit(image);
  for (const auto& [share, width] : {Contour{0.5, 1.0}, Contour{0.25, 1.6}, Contour{0.1, 2.4}}) {
    const auto segments = crossings(placed, level_of_top(levels, share));
    draw_segments(image, segments, {(width + 1.4) * unit, {0, 0, 0}, 0.55});
    draw_segments(image, segments, {width * unit, kPaper, 1});
  }
}

uint8_t gray_of(const uint8_t* rgb) {
  return static_cast<uint8_t>((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
}

void check_image(const Image& image) {
  if (image.width < 1 || image.height < 1)
    throw input_error("overlay: expected an image with pixels, found none");
}

bool covers(const Box& part, const Image& image) {
  return part.left <= 0 && part.top <= 0 && part.right >= image.width && part.bottom >= image.height;
}

}  // namespace

Fields fields(HeatOptions& options) {
  return Fields()
      .add("colors", options.colors, "color map: ember rises evenly in lightness, turbo and jet are rainbows")
      .choices(color_map_names())
      .add("scale", options.scale, "spread the colors over the values or over their ranks")
      .choices({"value", "rank"})
      .add("opacity", options.opacity, "of the colors over the image where the map is highest")
      .range(0, 1);
}

HeatRange heat_range(std::span<const float> map) {
  if (map.empty()) throw input_error("heat map: expected values, found none");
  for (size_t i = 0; i < map.size(); ++i)
    if (!std::isfinite(map[i]))
      throw input_error("heat map: expected finite values, found {} at index {}", map[i], i);
  const auto [low, high] = std::minmax_element(map.begin(), map.end());
  return {*low, *high};
}

std::vector<float> heat_levels(std::span<const float> map, const HeatOptions& options) {
  if (options.scale != "value" && options.scale != "rank")
    throw input_error("heat map: expected scale value or rank, found '{}'", printable(options.scale));
  return options.scale == "rank" ? levels_by_rank(map) : levels_by_value(map);
}

double heat_opacity(double level, const HeatOptions& options) {
  const double t = std::clamp((level - kTransparentBelow) / (kOpaqueFrom - kTransparentBelow), 0.0, 1.0);
  return options.opacity * t * t * (3 - 2 * t);
}

Image heat_image(std::span<const float> map, int width, int height, const HeatOptions& options) {
  check_map(map, width, height);
  return colored({width, height, heat_levels(map, options)}, options);
}

Image heat_image(std::span<const float> map, int width, int height, int image_width, int image_height,
                 const Box& part, const HeatOptions& options) {
  check_map(map, width, height);
  return colored(placed(heat_levels(map, options), width, height, image_width, image_height, part), options);
}

Image overlay(const Image& image, std::span<const float> map, int width, int height, const Box& part,
              const HeatOptions& options) {
  check_map(map, width, height);
  check_image(image);
  if (!(options.opacity >= 0 && options.opacity <= 1))
    throw input_error("overlay: expected an opacity in 0..1, found {}", options.opacity);
  const ColorTable& table = color_table(color_map_from_text(options.colors));
  const std::vector<float> levels = heat_levels(map, options);
  const PlacedLevels placed_levels = placed(levels, width, height, image.width, image.height, part);
  Image result = with_marked_part(image, part);
  for (size_t i = 0; i < placed_levels.values.size(); ++i) {
    const float level = placed_levels.values[i];
    const double opacity = level < 0 ? 0 : heat_opacity(level, options);
    if (opacity <= 0) continue;
    uint8_t* pixel = result.rgb.data() + i * 3;
    const uint8_t gray = gray_of(pixel);
    blend_pixel(pixel, {gray, gray, gray}, opacity);
    blend_pixel(pixel, color_at(table, level), opacity);
  }
  if (options.contours) draw_contours(result, placed_levels, levels);
  return result;
}

Image overlay(const Image& image, std::span<const float> map, int width, int height,
              const HeatOptions& options) {
  return overlay(image, map, width, height,
                 {0, 0, static_cast<double>(image.width), static_cast<double>(image.height)}, options);
}

Image with_marked_part(const Image& image, const Box& part) {
  constexpr double kPale = 0.6;
  check_image(image);
  Image result = image;
  if (covers(part, image)) return result;
  const auto pixel_at = [](double edge, int side) {
    return static_cast<int>(std::clamp(std::round(edge), 0.0, static_cast<double>(side)));
  };
  const int left = pixel_at(part.left, image.width), right = pixel_at(part.right, image.width),
            top = pixel_at(part.top, image.height), bottom = pixel_at(part.bottom, image.height);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      if (x >= left && x < right && y >= top && y < bottom) continue;
      uint8_t* pixel = result.row(y) + static_cast<size_t>(x) * 3;
      const uint8_t gray = gray_of(pixel);
      blend_pixel(pixel, {gray, gray, gray}, 1);
      blend_pixel(pixel, kPaper, kPale);
    }
  // The line lies outside, so that no pixel of the part is lost.
  const int unit = static_cast<int>(std::lround(line_unit(image))), line = 2 * unit;
  draw_frame(result, left - line, top - line, right - left + 2 * line, bottom - top + 2 * line, line,
             {33, 37, 41});
  return result;
}

Image color_bar(int width, int height, const HeatOptions& options) {
  const ColorTable& table = color_table(color_map_from_text(options.colors));
  Image bar = plain_image(width, height, kOutside);
  for (int x = 0; x < width; ++x) {
    const float level = width > 1 ? static_cast<float>(x) / static_cast<float>(width - 1) : 1;
    for (int y = 0; y < height; ++y)
      blend_pixel(bar.row(y) + static_cast<size_t>(x) * 3, color_at(table, level),
                  heat_opacity(level, options));
  }
  return bar;
}

}  // namespace aha
