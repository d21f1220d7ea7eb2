#include "aha/networks/seen_part.h"

#include <algorithm>
#include <cmath>

namespace aha {

InputPlacement input_placement(int width, int height, const InputSpec& spec) {
  InputPlacement out{width, height, 0, 0};
  if (spec.rule == ResizeRule::kStretch) out.width = out.height = spec.resize;
  if (spec.rule == ResizeRule::kShortSide) {
    const int shorter = std::min(width, height), longer = std::max(width, height);
    const auto other = static_cast<int>(static_cast<int64_t>(spec.resize) * longer / shorter);
    out.width = width <= height ? spec.resize : other;
    out.height = width <= height ? other : spec.resize;
  }
  const auto corner = [&](int side) {
    if (!spec.crop) return 0.0;
    return side < spec.size ? -std::floor((spec.size - side) / 2.0)
                            : std::nearbyint((side - spec.size) / 2.0);
  };
  out.left = corner(out.width);
  out.top = corner(out.height);
  return out;
}

Box seen_part(int width, int height, const InputSpec& spec) {
  const InputPlacement at = input_placement(width, height, spec);
  const double across = static_cast<double>(width) / at.width, down = static_cast<double>(height) / at.height;
  return {at.left * across, at.top * down, (at.left + spec.size) * across, (at.top + spec.size) * down};
}

}  // namespace aha
