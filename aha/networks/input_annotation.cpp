#include "aha/networks/input_annotation.h"

#include <algorithm>
#include <cmath>

namespace aha {

Tensor mask_in_input(const Image& mask, const InputSpec& spec) {
  InputSpec nearest = spec;
  nearest.filter = Filter::kNearest;
  return (input_from_image(mask, nearest) > 0).any(0);
}

std::vector<Box> boxes_in_input(const std::vector<Box>& boxes, int width, int height, const InputSpec& spec) {
  // Sides after resizing and the crop's corner, as image/resize.h has them.
  int w = width, h = height;
  if (spec.rule == ResizeRule::kStretch) w = h = spec.resize;
  if (spec.rule == ResizeRule::kShortSide) {
    const int shorter = std::min(width, height), longer = std::max(width, height);
    const auto other = static_cast<int>(static_cast<int64_t>(spec.resize) * longer / shorter);
    w = width <= height ? spec.resize : other;
    h = width <= height ? other : spec.resize;
  }
  const auto corner = [&](int side) {
    if (!spec.crop) return 0.0;
    return side < spec.size ? -std::floor((spec.size - side) / 2.0)
                            : std::nearbyint((side - spec.size) / 2.0);
  };
  const auto along = [&](double at, int before, int after) {
    return std::clamp(at * after / before - corner(after), 0.0, static_cast<double>(spec.size));
  };
  std::vector<Box> out;
  for (const Box& box : boxes) {
    const Box moved{along(box.left, width, w), along(box.top, height, h), along(box.right, width, w),
                    along(box.bottom, height, h)};
    if (moved.left < moved.right && moved.top < moved.bottom) out.push_back(moved);
  }
  return out;
}

}  // namespace aha
