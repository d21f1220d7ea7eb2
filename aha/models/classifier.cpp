#include "aha/models/classifier.h"

#include <cmath>

#include "aha/base/error.h"

namespace aha {

Tensor input_from_image(const Image& image, const InputSpec& spec) {
  Image ready = image;
  if (spec.rule == ResizeRule::kShortSide) ready = resized_short_side(image, spec.resize, spec.filter);
  if (spec.rule == ResizeRule::kStretch) ready = resized(image, spec.resize, spec.resize, spec.filter);
  if (spec.crop) ready = center_cropped(ready, spec.size);
  if (ready.width != spec.size || ready.height != spec.size)
    throw input_error("image: expected {0} x {0} pixels after preprocessing, found {1} x {2}", spec.size,
                      ready.width, ready.height);
  return tensor_from_image(ready);  // (3, size, size)
}

Tensor normalized(const Tensor& pixels, const InputSpec& spec) {
  check_shape(pixels, {-1, 3, -1, -1}, "pixels");
  const auto channel = [&](const std::array<double, 3>& values) {
    return torch::tensor({values[0], values[1], values[2]}, pixels.options().requires_grad(false))
        .view({1, 3, 1, 1});
  };
  return (pixels - channel(spec.mean)) / channel(spec.std);
}

InputSpec with_overrides(InputSpec spec, const LoadOptions& options) {
  if (options.input_size && *options.input_size != spec.size) {
    if (*options.input_size < 1 || *options.input_size > 16384)
      throw input_error("--input-size: expected 1..16384 pixels, found {}", *options.input_size);
    spec.resize =
        static_cast<int>(std::lround(static_cast<double>(spec.resize) * *options.input_size / spec.size));
    spec.size = *options.input_size;
  }
  if (options.mean) spec.mean = *options.mean;
  if (options.std) spec.std = *options.std;
  for (const double s : spec.std)
    if (!(s > 0)) throw input_error("--std: expected numbers above 0, found {}", s);
  return spec;
}

}  // namespace aha
