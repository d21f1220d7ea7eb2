#include "aha/methods/patch_maps.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/base/square_side.h"

namespace aha {

Tensor grid_from_patches(const Tensor& values) {
  const auto n = values.size(1);
  const auto side = square_side(n);
  if (side == 0) throw input_error("expected a square grid of patches, found {} patches", n);
  return values.reshape({-1, side, side});
}

Tensor upsampled(const Tensor& grid, int64_t height, int64_t width) {
  // Other strides, as a slice of a batch has them, take another loop whose last bits differ.
  return at::upsample_bilinear2d(grid.contiguous().unsqueeze(1), {height, width}, false).squeeze(1);
}

Tensor map_of_tokens(const Tensor& values, int64_t prefix, const Tensor& pixels) {
  return upsampled(grid_from_patches(values.slice(1, prefix)), pixels.size(2), pixels.size(3));
}

Tensor min_max(const Tensor& maps) {
  const auto low = maps.amin({1, 2}, true), range = maps.amax({1, 2}, true) - low;
  return torch::where(range > 0, (maps - low) / range, torch::zeros_like(maps));
}

Tensor cam_scaled(const Tensor& raw) {
  const auto positive = raw.clamp_min(0);
  const auto risen = positive - positive.amin({1, 2}, true);
  return risen / (risen.amax({1, 2}, true) + 1e-7);
}

Tensor cam_finished(const Tensor& raw, int64_t height, int64_t width) {
  return cam_scaled(upsampled(cam_scaled(raw), height, width));
}

Tensor blurred_maps(const Tensor& maps, double sigma_px) {
  const auto side = std::min(maps.size(1), maps.size(2));
  const auto radius = std::min<int64_t>(static_cast<int64_t>(std::ceil(3 * sigma_px)), side - 1);
  if (radius < 1) return maps;
  auto weights = torch::arange(-radius, radius + 1, torch::kFloat64).div(sigma_px).square().mul(-0.5).exp();
  weights = (weights / weights.sum()).to(maps.options());
  // One by one: libtorch's convolution may choose another way for another batch.
  std::vector<Tensor> out;
  for (int64_t b = 0; b < maps.size(0); ++b) {
    auto x = torch::reflection_pad2d(maps.narrow(0, b, 1).unsqueeze(1),
                                     {radius, radius, radius, radius});  // (1, 1, H + 2r, W + 2r)
    x = torch::conv2d(x, weights.view({1, 1, -1, 1}));
    out.push_back(torch::conv2d(x, weights.view({1, 1, 1, -1})).squeeze(1));
  }
  return torch::cat(out);
}

}  // namespace aha
