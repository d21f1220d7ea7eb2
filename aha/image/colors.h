// Color maps as tables of 256 colors.
//
//   ember  the default: lightness rises evenly from black over violet, red and orange to pale yellow, so that
//   a brighter pixel is always a
//          more important one, on a gray printer and to color-blind eyes too. Computed in Oklab (Ottosson
//          2020): L linear, hue turning, chroma as strong as the screen shows.
//   turbo  rainbow of smooth lightness (Mikhailov 2019), by its published polynomials
//   jet    the old rainbow, for comparison with published figures; its lightness misleads
//   gray   black to white
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aha {

using Color = std::array<uint8_t, 3>;

enum class ColorMap { kEmber, kTurbo, kJet, kGray };

std::vector<std::string> color_map_names();
ColorMap color_map_from_text(std::string_view name);

using ColorTable = std::array<Color, 256>;
const ColorTable& color_table(ColorMap map);

}  // namespace aha
