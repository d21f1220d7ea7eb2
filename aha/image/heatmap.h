// Maps as pictures: coloured, laid over the photo, with a legend.
//
// A map is real, higher = more important, row-major. Its values are spread over the colours either by value
// (lowest to highest) or by rank (every colour gets as many pixels), the reading that a ranking of pixels
// asks for. A constant map gets the middle colour; NaN and infinities are input errors.
#pragma once

#include <span>
#include <string>

#include "aha/base/options.h"
#include "aha/image/colours.h"
#include "aha/image/image.h"

namespace aha {

struct HeatOptions {
  std::string colours = "ember";  // colour_map_names()
  std::string scale = "value";    // "value" or "rank"
  double opacity = 0.55;          // of the colours over the picture: 0 = picture only, 1 = colours only
};
Fields fields(HeatOptions& options);

struct HeatRange {
  float low = 0, high = 0;
};
HeatRange heat_range(std::span<const float> map);

// map (height, width) -> a picture of that size.
Image heat_image(std::span<const float> map, int width, int height, const HeatOptions& options = {});

// The colours over the picture. A map of another size is interpolated linearly (between pixel centres) to the
// picture's.
Image overlay(const Image& picture, std::span<const float> map, int width, int height,
              const HeatOptions& options = {});

// The picture with a bar of the colours below it and the two ends of the range in numbers.
Image with_legend(const Image& picture, HeatRange range, const HeatOptions& options = {});

}  // namespace aha
