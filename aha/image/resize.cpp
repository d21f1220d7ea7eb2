#include "aha/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "aha/base/error.h"
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

TapTable taps_for(int in, int out, Filter filter) {
  const bool bicubic = filter == Filter::kBicubic;
  const double scale = static_cast<double>(in) / out;
  const double stretch = std::max(scale, 1.0);
  const double support = (bicubic ? 2.0 : 1.0) * stretch;
  const int most = std::min(in, static_cast<int>(std::ceil(support)) * 2 + 1);

  TapTable taps;
  taps.stride = (most + kTapGroup - 1) / kTapGroup * kTapGroup;
  taps.first.resize(out);
  taps.count.resize(out);
  taps.weight.resize(static_cast<size_t>(out) * taps.stride);
  taps.high.resize(taps.weight.size());
  taps.low.resize(taps.weight.size());
  std::vector<double> row(most);
  for (int x = 0; x < out; ++x) {
    const double center = (x + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int count = std::min(in, static_cast<int>(center + support + 0.5)) - first;
    double sum = 0;
    for (int t = 0; t < count; ++t) {
      // The reciprocal, not the quotient: Pillow multiplies, and the last bit of a weight can depend on it.
      const double offset = (t + first - center + 0.5) * (1.0 / stretch);
      sum += row[t] = bicubic ? cubic(offset) : triangle(offset);
    }
    taps.first[x] = first;
    taps.count[x] = count;
    for (int t = 0; t < count; ++t) {
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

Image with_width(const Image& image, int width, Filter filter, const ResizePasses& passes) {
  const TapTable taps = taps_for(image.width, width, filter);
  const size_t row_bytes = static_cast<size_t>(image.width) * 3;
  std::vector<uint8_t> padded(row_bytes + kRowPadding);
  Image result(width, image.height);
  for (int y = 0; y < image.height; ++y) {
    std::memcpy(padded.data(), image.row(y), row_bytes);
    passes.horizontal(padded.data(), taps, width, result.row(y));
  }
  return result;
}

Image with_height(const Image& image, int height, Filter filter, const ResizePasses& passes) {
  const TapTable taps = taps_for(image.height, height, filter);
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

Image nearest(const Image& image, int width, int height) {
  const auto columns = nearest_positions(image.width, width), rows = nearest_positions(image.height, height);
  Image result(width, height);
  for (int y = 0; y < height; ++y) {
    const uint8_t* from = image.row(rows[y]);
    uint8_t* to = result.row(y);
    for (int x = 0; x < width; ++x)
      std::memcpy(to + static_cast<size_t>(x) * 3, from + static_cast<size_t>(columns[x]) * 3, 3);
  }
  return result;
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
  if (filter == Filter::kNearest) return nearest(image, width, height);
  if (width == image.width && height == image.height) return image;
  if (width == image.width) return with_height(image, height, filter, passes);
  Image wide = with_width(image, width, filter, passes);
  return height == image.height ? wide : with_height(wide, height, filter, passes);
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
