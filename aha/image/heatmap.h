// Maps as images: colored, and laid over the photo.
//
// A map is real, higher = more important, row-major. Its values become levels in 0..1 either by value (the
// lowest and highest percent of the pixels share the end levels, so that a few extreme ones do not hide the
// others) or by rank (every level has as many pixels), the reading that a ranking of pixels asks for. A
// constant map is 0.5 everywhere; NaN and infinities are input errors.
//
// Over a photo the colors are as opaque as the level is high: the photo is untouched where the map is low.
// Below the colors it turns gray, so that its own colors are not read as the map's.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "aha/base/options.h"
#include "aha/image/box.h"
#include "aha/image/colors.h"
#include "aha/image/image.h"

namespace aha {

struct HeatOptions {
  std::string colors = "ember";  // color_map_names()
  std::string scale = "value";   // "value" or "rank"
  double opacity = 0.65;         // of the highest level's color over the image: 0 = image only
  bool contours = false;         // around the top 10, 25 and 50 % of the pixels
};
Fields fields(HeatOptions& options);  // without contours, which is a flag of its own

struct HeatRange {
  float low = 0, high = 0;
};
HeatRange heat_range(std::span<const float> map);

// One for each value, in 0..1.
std::vector<float> heat_levels(std::span<const float> map, const HeatOptions& options = {});

// Of a level's color over an image, 0..options.opacity: 0 up to level 0.2, then rising smoothly to 0.9.
double heat_opacity(double level, const HeatOptions& options = {});

// map (height, width) -> an image of that size.
Image heat_image(std::span<const float> map, int width, int height, const HeatOptions& options = {});

// The colors over the image. A map of another size is interpolated linearly (between pixel centers) to the
// image's.
Image overlay(const Image& image, std::span<const float> map, int width, int height,
              const HeatOptions& options = {});

// The map covers only this part of the image, in its pixels; it may reach beyond the border. The rest is
// pale, and a line runs around the part.
Image overlay(const Image& image, std::span<const float> map, int width, int height, const Box& part,
              const HeatOptions& options);
// The colors alone at the size of that image, the rest is gray.
Image heat_image(std::span<const float> map, int width, int height, int image_width, int image_height,
                 const Box& part, const HeatOptions& options);

// The image with what is outside the part pale and a line around it; itself where nothing is outside.
Image with_marked_part(const Image& image, const Box& part);

// Lowest to highest level from left to right, as they look over an image of middle gray.
Image color_bar(int width, int height, const HeatOptions& options = {});

}  // namespace aha
