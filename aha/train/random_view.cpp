#include "aha/train/random_view.h"

#include <cmath>
#include <cstring>

namespace aha {

Tensor random_view(const Image& image, const InputSpec& input, double least_area, Rng rng) {
  const int largest = std::min(image.width, image.height);
  const int side =
      std::clamp(static_cast<int>(std::lround(largest * std::sqrt(rng.uniform(least_area, 1)))), 1, largest);
  const auto left = static_cast<int>(rng.below(image.width - side + 1)),
             top = static_cast<int>(rng.below(image.height - side + 1));
  Image square(side, side);
  for (int y = 0; y < side; ++y)
    std::memcpy(square.row(y), image.row(top + y) + ptrdiff_t{3} * left, size_t{3} * side);
  InputSpec whole = input;
  whole.rule = ResizeRule::kStretch;
  whole.resize = input.size;
  whole.crop = false;
  return input_from_image(square, whole);
}

}  // namespace aha
