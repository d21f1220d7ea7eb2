#include "aha/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "aha/base/error.h"
#include "aha/image/resize_crop.h"
#include "aha/image/resize_passes.h"

namespace aha {
namespace {

double triangle(double x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}

double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// Of the output positions from..from + count of `out`.
TapTable taps_for(int in, int out, int from, int count, Filter filter) {
  const bool bicubic = filter == Filter::kBicubic;
  const double scale = static_cast<double>(in) / out;
  const double stretch = std::max(scale, 1.0);
  const double support = (bicubic ? 2.0 : 1.0) * stretch;
  const int most = std::min(in, static_cast<int>(std::ceil(support)) * 2 + 1);

  TapTable taps;
  taps.stride = (most + kTapGroup - 1) / kTapGroup * kTapGroup;
  taps.first.resize(count);
  taps.count.resize(count);
  taps.weight.resize(static_cast<size_t>(count) * taps.stride);
  taps.high.resize(taps.weight.size());
  taps.low.resize(taps.weight.size());
  std::vector<double> row(most);
  for (int x = 0; x < count; ++x) {
    const double center = (from + x + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int used = std::min(in, static_cast<int>(center + support + 0.5)) - first;
    double sum = 0;
    for (int t = 0; t < used; ++t) {
      // The reciprocal, not the quotient: Pillow multiplies, and the last bit of a weight can depend on it.
      const double offset = (t + first - center + 0.5) * (1.0 / stretch);
      sum += row[t] = bicubic ? cubic(offset) : triangle(offset);
    }
    taps.first[x] = first;
    taps.count[x] = used;
    for (int t = 0; t < used; ++t) {
      const double share = sum != 0 ? row[t] / sum : row[t];
      const auto weight = static_cast<int32_t>((share < 0 ? -0.5 : 0.5) + share * (1 << kWeightBits));
      const size_t at = static_cast<size_t>(x) * taps.stride + t;
      taps.weight[at] = weight;
      taps.high[at] = static_cast<int16_t>(weight >> kLowBits);
      taps.low[at] = static_cast<int16_t>(weight & ((1 << kLowBits) - 1));
    }
  }
  return taps;
}

// A part of a resized image, in its pixels.
struct Window {
  int left, top, width, height;
};

// Rows top..top + height of the image, each with the window's columns at `width`.
Image with_width(const Image& image, int top, int height, int width, const Window& window, Filter filter,
                 const ResizePasses& passes) {
  Image result(window.width, height);
  if (width == image.width) {
    for (int y = 0; y < height; ++y)
      std::memcpy(result.row(y), image.row(top + y) + static_cast<size_t>(window.left) * 3,
                  static_cast<size_t>(window.width) * 3);
    return result;
  }
  const TapTable taps = taps_for(image.width, width, window.left, window.width, filter);
  const size_t row_bytes = static_cast<size_t>(image.width) * 3;
  std::vector<uint8_t> padded(row_bytes + kRowPadding);
  for (int y = 0; y < height; ++y) {
    std::memcpy(padded.data(), image.row(top + y), row_bytes);
    passes.horizontal(padded.data(), taps, window.width, result.row(y));
  }
  return result;
}

Image with_height(const Image& image, const TapTable& taps, int height, const ResizePasses& passes) {
  Image result(image.width, height);
  const size_t row_bytes = static_cast<size_t>(image.width) * 3;
  for (int y = 0; y < height; ++y) passes.vertical(image.rgb.data(), row_bytes, taps, y, result.row(y));
  return result;
}

// The input position of each output position. The positions are summed up, as Pillow does: the rounding is
// part of the result.
std::vector<int> nearest_positions(int in, int out) {
  const double step = static_cast<double>(in) / out;
  std::vector<int> positions(out);
  double at = step * 0.5;
  for (int& position : positions) {
    position = std::min(static_cast<int>(at), in - 1);
    at += step;
  }
  return positions;
}

Image nearest(const Image& image, int width, int height, const Window& window) {
  const auto columns = nearest_positions(image.width, width), rows = nearest_positions(image.height, height);
  Image result(window.width, window.height);
  for (int y = 0; y < window.height; ++y) {
    const uint8_t* from = image.row(rows[window.top + y]);
    uint8_t* to = result.row(y);
    for (int x = 0; x < window.width; ++x)
      std::memcpy(to + static_cast<size_t>(x) * 3, from + static_cast<size_t>(columns[window.left + x]) * 3,
                  3);
  }
  return result;
}

Image resized_window(const ResizePasses& passes, const Image& image, int width, int height,
                     const Window& window, Filter filter) {
  if (filter == Filter::kNearest) return nearest(image, width, height, window);
  if (height == image.height)
    return with_width(image, window.top, window.height, width, window, filter, passes);
  TapTable taps = taps_for(image.height, height, window.top, window.height, filter);
  const int top = *std::min_element(taps.first.begin(), taps.first.end());
  int bottom = 0;
  for (size_t y = 0; y < taps.first.size(); ++y) bottom = std::max(bottom, taps.first[y] + taps.count[y]);
  for (int& first : taps.first) first -= top;
  return with_height(with_width(image, top, bottom - top, width, window, filter, passes), taps, window.height,
                     passes);
}

// 1 Gpixel: beyond it a size is a mistake, and 32-bit positions would not hold it.
constexpr int64_t kMostPixels = int64_t{1} << 30;

void check_sizes(const Image& image, int64_t width, int64_t height) {
  if (image.width < 1 || image.height < 1)
    throw input_error("resize: expected an image with pixels, found {} x {}", image.width, image.height);
  if (width < 1 || height < 1)
    throw input_error("resize: expected a size of at least 1 x 1, found {} x {}", width, height);
  if (width > kMostPixels / height)
    throw input_error("resize: expected at most {} pixels, found {} x {}", kMostPixels, width, height);
}

// n / 2 for n >= 0, halves to the even neighbor as Python's round().
int half_of(int n) {
  return n / 2 + (n % 4 == 3 ? 1 : 0);
}

}  // namespace

Image resized_with(const ResizePasses& passes, const Image& image, int width, int height, Filter filter) {
  check_sizes(image, width, height);
  if (width == image.width && height == image.height && filter != Filter::kNearest) return image;
  return resized_window(passes, image, width, height, {0, 0, width, height}, filter);
}

Image resized(const Image& image, int width, int height, Filter filter) {
  return resized_with(best_passes(), image, width, height, filter);
}

Image resized_short_side(const Image& image, int size, Filter filter) {
  check_sizes(image, size, size);
  const int shorter = std::min(image.width, image.height), longer = std::max(image.width, image.height);
  if (shorter == size) return image;
  const int64_t other = static_cast<int64_t>(size) * longer / shorter;
  check_sizes(image, size, other);
  return image.width <= image.height ? resized(image, size, static_cast<int>(other), filter)
                                     : resized(image, static_cast<int>(other), size, filter);
}

Image resized_and_cropped(const Image& image, int size, int crop, Filter filter) {
  check_sizes(image, size, size);
  check_sizes(image, crop, crop);
  const int64_t shorter = std::min(image.width, image.height), longer = std::max(image.width, image.height);
  const int64_t other = shorter == size ? longer : size * longer / shorter;
  if (other > INT32_MAX)
    throw input_error("resize: expected sides that are less apart, found {} x {}", image.width, image.height);
  const bool tall = image.width <= image.height;
  const int width = tall ? size : static_cast<int>(other), height = tall ? static_cast<int>(other) : size;
  const auto kept = [&](int side) {
    return std::pair(side > crop ? half_of(side - crop) : 0, std::min(side, crop));
  };
  const auto [left, columns] = kept(width);
  const auto [top, rows] = kept(height);
  const Window window{left, top, columns, rows};
  const Image middle = shorter == size ? with_width(image, top, rows, width, window, filter, best_passes())
                                       : resized_window(best_passes(), image, width, height, window, filter);
  return columns == crop && rows == crop ? middle : center_cropped(middle, crop);
}

Image center_cropped(const Image& image, int size) {
  check_sizes(image, size, size);
  // Padding puts the smaller half before: (size - side) / 2 rounded down, as torchvision does; then nothing
  // is left to crop on that axis.
  const auto offset = [&](int side) { return side < size ? -((size - side) / 2) : half_of(side - size); };
  const int left = offset(image.width), top = offset(image.height);
  const int x0 = std::max(left, 0), x1 = std::min(left + size, image.width);
  Image result(size, size);
  for (int y = std::max(top, 0); y < std::min(top + size, image.height); ++y)
    std::memcpy(result.row(y - top) + static_cast<size_t>(x0 - left) * 3,
                image.row(y) + static_cast<size_t>(x0) * 3, static_cast<size_t>(x1 - x0) * 3);
  return result;
}

}  // namespace aha
