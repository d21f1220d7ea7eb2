#include "aha/image/colors.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "aha/base/error.h"

namespace aha {
namespace {

using Rgb = std::array<double, 3>;  // 0..1

struct Entry {
  const char* name;
  ColorMap map;
  Rgb (*color)(double t);  // t in 0..1
};

Rgb linear_rgb_from_oklab(double lightness, double a, double b) {
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(lightness - 0.0894841775 * a - 1.2914855480 * b);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

double srgb_from_linear(double x) {
  return x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
}

Rgb ember(double t) {
  constexpr double kDark = 0.08, kLight = 0.97;   // Oklab lightness of the ends
  constexpr double kFrom = 285, kTo = 360 + 105;  // hue in degrees: violet, through red, to yellow
  constexpr double kMostChroma = 0.22, kEndChroma = 0.09;
  const double lightness = kDark + (kLight - kDark) * t;
  const double hue = (kFrom + (kTo - kFrom) * t) * std::numbers::pi / 180;
  double chroma = kEndChroma + (kMostChroma - kEndChroma) * std::sin(std::numbers::pi * t);
  const auto shown = [](const Rgb& c) {
    return std::ranges::all_of(c, [](double x) { return x >= 0 && x <= 1; });
  };
  Rgb linear = linear_rgb_from_oklab(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
  // Outside what a screen shows, color gives way and lightness stays.
  for (; !shown(linear) && chroma > 0; chroma -= 0.001)
    linear = linear_rgb_from_oklab(lightness, chroma * std::cos(hue), chroma * std::sin(hue));
  return {srgb_from_linear(linear[0]), srgb_from_linear(linear[1]), srgb_from_linear(linear[2])};
}

Rgb turbo(double t) {
  const auto polynomial = [t](const std::array<double, 6>& c) {
    return c[0] + t * (c[1] + t * (c[2] + t * (c[3] + t * (c[4] + t * c[5]))));
  };
  return {polynomial({0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943}),
          polynomial({0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604}),
          polynomial({0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973})};
}

Rgb jet(double t) {
  const auto peak = [t](double center) { return 1.5 - std::abs(4 * t - center); };
  return {peak(3), peak(2), peak(1)};
}

Rgb gray(double t) {
  return {t, t, t};
}

constexpr Entry kMaps[] = {
    {"ember", ColorMap::kEmber, ember},
    {"turbo", ColorMap::kTurbo, turbo},
    {"jet", ColorMap::kJet, jet},
    {"gray", ColorMap::kGray, gray},
};

ColorTable table_of(Rgb (*color)(double)) {
  ColorTable table;
  for (int i = 0; i < 256; ++i) {
    const Rgb rgb = color(i / 255.0);
    for (int c = 0; c < 3; ++c)
      table[i][c] = static_cast<uint8_t>(std::lround(std::clamp(rgb[c], 0.0, 1.0) * 255));
  }
  return table;
}

}  // namespace

std::vector<std::string> color_map_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kMaps) names.emplace_back(entry.name);
  return names;
}

ColorMap color_map_from_text(std::string_view name) {
  for (const Entry& entry : kMaps)
    if (entry.name == name) return entry.map;
  throw unknown_name_error("color map", name, color_map_names());
}

const ColorTable& color_table(ColorMap map) {
  static const auto tables = [] {
    std::array<ColorTable, std::size(kMaps)> all;
    for (size_t i = 0; i < all.size(); ++i) all[static_cast<size_t>(kMaps[i].map)] = table_of(kMaps[i].color);
    return all;
  }();
  return tables.at(static_cast<size_t>(map));
}

}  // namespace aha
