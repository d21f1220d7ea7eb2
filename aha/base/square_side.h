// The side of a square grid from the number of its cells.
#pragma once

#include <cmath>
#include <cstdint>

namespace aha {

// 0 where n is no square.
inline int64_t square_side(int64_t n) {
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(n))));
  return side * side == n ? side : 0;
}

}  // namespace aha
