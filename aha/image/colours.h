// Colour maps as tables of 256 colours.
//
//   ember  the default: lightness rises evenly from black over violet, red and orange to pale yellow, so that
//   a brighter pixel is always a
//          more important one, on a grey printer and to colour-blind eyes too. Computed in Oklab (Ottosson
//          2020): L linear, hue turning, chroma as strong as the screen shows.
//   turbo  rainbow of smooth lightness (Mikhailov 2019), by its published polynomials
//   jet    the old rainbow, for comparison with published figures; its lightness misleads
//   grey   black to white
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "aha/image/text.h"

namespace aha {

enum class ColourMap { kEmber, kTurbo, kJet, kGrey };

std::vector<std::string> colour_map_names();
ColourMap colour_map_from_text(std::string_view name);

using ColourTable = std::array<Colour, 256>;
const ColourTable& colour_table(ColourMap map);

}  // namespace aha
