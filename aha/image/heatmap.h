// Maps as images: colored, and laid over the photo.
//
// A map is real, higher = more important, row-major. Its values are spread over the colors either by value
// (lowest to highest) or by rank (every color gets as many pixels), the reading that a ranking of pixels
// asks for. A constant map gets the middle color; NaN and infinities are input errors.
#pragma once

#include <span>
#include <string>

#include "aha/base/options.h"
#include "aha/image/colors.h"
#include "aha/image/image.h"

namespace aha {

struct HeatOptions {
  std::string colors = "ember";  // color_map_names()
  std::string scale = "value";   // "value" or "rank"
  double opacity = 0.55;         // of the colors over the image: 0 = image only, 1 = colors only
};
Fields fields(HeatOptions& options);

struct HeatRange {
  float low = 0, high = 0;
};
HeatRange heat_range(std::span<const float> map);

// map (height, width) -> an image of that size.
Image heat_image(std::span<const float> map, int width, int height, const HeatOptions& options = {});

// The colors over the image. A map of another size is interpolated linearly (between pixel centers) to the
// image's.
Image overlay(const Image& image, std::span<const float> map, int width, int height,
              const HeatOptions& options = {});

}  // namespace aha
