// Pixels: 8-bit RGB, row-major, interleaved. Every image a user gives becomes one of these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aha {

struct Image {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // height * width * 3

  Image() = default;
  Image(int width, int height) : width(width), height(height), rgb(static_cast<size_t>(width) * height * 3) {}
  uint8_t* row(int y) { return rgb.data() + static_cast<size_t>(y) * width * 3; }
  const uint8_t* row(int y) const { return rgb.data() + static_cast<size_t>(y) * width * 3; }
};

}  // namespace aha
