// The font files inside this library: DejaVu Sans as the build found it (cmake/AhaDependencies.cmake).
#pragma once

#include <cstdint>
#include <span>

namespace aha {

std::span<const uint8_t> font_file(bool bold);

}  // namespace aha
