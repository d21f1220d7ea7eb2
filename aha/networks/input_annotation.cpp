#include "aha/networks/input_annotation.h"

#include <algorithm>

#include "aha/networks/seen_part.h"

namespace aha {

Tensor mask_in_input(const Image& mask, const InputSpec& spec) {
  InputSpec nearest = spec;
  nearest.filter = Filter::kNearest;
  return (input_from_image(mask, nearest) > 0).any(0);
}

std::vector<Box> boxes_in_input(const std::vector<Box>& boxes, int width, int height, const InputSpec& spec) {
  const InputPlacement at = input_placement(width, height, spec);
  const auto along = [&](double edge, int before, int after, double corner) {
    return std::clamp(edge * after / before - corner, 0.0, static_cast<double>(spec.size));
  };
  std::vector<Box> out;
  for (const Box& box : boxes) {
    const Box moved{along(box.left, width, at.width, at.left), along(box.top, height, at.height, at.top),
                    along(box.right, width, at.width, at.left), along(box.bottom, height, at.height, at.top)};
    if (moved.left < moved.right && moved.top < moved.bottom) out.push_back(moved);
  }
  return out;
}

}  // namespace aha
