#include "aha/image/heatmap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "aha/base/error.h"

namespace aha {
namespace {

void check_map(std::span<const float> map, int width, int height) {
  if (width < 1 || height < 1 || map.size() != static_cast<size_t>(width) * static_cast<size_t>(height))
    throw input_error("heat map: expected {} x {} values, found {}", width, height, map.size());
}

// 0..255 for every value.
std::vector<uint8_t> levels_by_value(std::span<const float> map) {
  const HeatRange range = heat_range(map);
  const double low = range.low, span = static_cast<double>(range.high) - low;
  std::vector<uint8_t> levels(map.size());
  for (size_t i = 0; i < map.size(); ++i)
    levels[i] = static_cast<uint8_t>(span > 0 ? std::lround((map[i] - low) / span * 255) : 128);
  return levels;
}

// Equal values get the level of their mean rank.
std::vector<uint8_t> levels_by_rank(std::span<const float> map) {
  heat_range(map);  // refuses values that have no rank
  std::vector<uint32_t> order(map.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return map[a] < map[b]; });
  std::vector<uint8_t> levels(map.size());
  const double last = static_cast<double>(map.size()) - 1;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && map[order[end]] == map[order[begin]]) ++end;
    const double rank = 0.5 * static_cast<double>(begin + end - 1);
    const auto level = static_cast<uint8_t>(last > 0 ? std::lround(rank / last * 255) : 128);
    for (size_t i = begin; i < end; ++i) levels[order[i]] = level;
  }
  return levels;
}

// Where an output position falls between two input centers.
struct Between {
  int left, right;
  float share;  // of the right one
};

std::vector<Between> positions(int in, int out) {
  std::vector<Between> found(out);
  for (int i = 0; i < out; ++i) {
    const double at = std::clamp((i + 0.5) * in / out - 0.5, 0.0, in - 1.0);
    const int left = static_cast<int>(at);
    found[i] = {left, std::min(left + 1, in - 1), static_cast<float>(at - left)};
  }
  return found;
}

std::vector<float> interpolated(std::span<const float> map, int width, int height, int to_width,
                                int to_height) {
  const auto columns = positions(width, to_width), rows = positions(height, to_height);
  std::vector<float> result;
  result.reserve(static_cast<size_t>(to_width) * to_height);
  for (const Between& row : rows) {
    const float *upper = map.data() + static_cast<size_t>(row.left) * width,
                *lower = map.data() + static_cast<size_t>(row.right) * width;
    for (const Between& column : columns) {
      const float top = std::lerp(upper[column.left], upper[column.right], column.share);
      const float bottom = std::lerp(lower[column.left], lower[column.right], column.share);
      result.push_back(std::lerp(top, bottom, row.share));
    }
  }
  return result;
}

}  // namespace

Fields fields(HeatOptions& options) {
  return Fields()
      .add("colors", options.colors, "color map: ember rises evenly in lightness, turbo and jet are rainbows")
      .choices(color_map_names())
      .add("scale", options.scale, "spread the colors over the values or over their ranks")
      .choices({"value", "rank"})
      .add("opacity", options.opacity, "of the colors over the image")
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

Image heat_image(std::span<const float> map, int width, int height, const HeatOptions& options) {
  check_map(map, width, height);
  if (options.scale != "value" && options.scale != "rank")
    throw input_error("heat map: expected scale value or rank, found '{}'", printable(options.scale));
  const ColorTable& table = color_table(color_map_from_text(options.colors));
  const std::vector<uint8_t> levels = options.scale == "rank" ? levels_by_rank(map) : levels_by_value(map);
  Image image(width, height);
  for (size_t i = 0; i < levels.size(); ++i)
    std::memcpy(image.rgb.data() + i * 3, table[levels[i]].data(), 3);
  return image;
}

Image overlay(const Image& image, std::span<const float> map, int width, int height,
              const HeatOptions& options) {
  check_map(map, width, height);
  if (image.width < 1 || image.height < 1)
    throw input_error("overlay: expected an image with pixels, found none");
  if (!(options.opacity >= 0 && options.opacity <= 1))
    throw input_error("overlay: expected an opacity in 0..1, found {}", options.opacity);
  heat_range(map);  // before interpolation: the message names the index in the caller's map
  const bool same = width == image.width && height == image.height;
  Image result = same ? heat_image(map, width, height, options)
                      : heat_image(interpolated(map, width, height, image.width, image.height), image.width,
                                   image.height, options);
  const auto opacity = static_cast<int>(std::lround(options.opacity * 256));
  for (size_t i = 0; i < result.rgb.size(); ++i)
    result.rgb[i] =
        static_cast<uint8_t>((result.rgb[i] * opacity + image.rgb[i] * (256 - opacity) + 128) >> 8);
  return result;
}

}  // namespace aha
