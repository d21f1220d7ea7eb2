#include "aha/perturb/adaptive_blur.h"

#include <algorithm>
#include <cmath>

#include "aha/perturb/reference.h"

namespace aha {
namespace {

constexpr double kPublishedSide = 224;

int odd_in_proportion(int at_published_side, double side) {
  const double wanted = at_published_side * side / kPublishedSide;
  return std::max(3, 2 * static_cast<int>(std::lround((wanted - 1) / 2)) + 1);
}

}  // namespace

AdaptiveBlur adaptive_blur(const Tensor& image, const std::array<double, 3>& mean,
                           const std::function<double(const Tensor&)>& probability,
                           const AdaptiveBlurOptions& options) {
  check_shape(image, {3, -1, -1}, "image");
  const auto side = static_cast<double>(std::min(image.size(1), image.size(2)));
  const int last = odd_in_proportion(options.last_px, side),
            step =
                std::max(2, 2 * static_cast<int>(std::lround(options.step_px * side / kPublishedSide / 2)));
  AdaptiveBlur out;
  for (int kernel = odd_in_proportion(options.first_px, side);; kernel += step) {
    ReferenceOptions blur;
    blur.mean_color.assign(mean.begin(), mean.end());
    blur.blur = "rise";
    blur.sigma_px = blur.kernel_px = kernel;
    out.image = reference_image(image.unsqueeze(0), ReferenceKind::kBlur, blur)[0];
    out.kernel_px = kernel;
    out.probability = probability(out.image);
    ++out.asked;
    if (out.probability <= options.threshold || kernel > last) break;
  }
  out.found = out.kernel_px <= last;
  return out;
}

}  // namespace aha
