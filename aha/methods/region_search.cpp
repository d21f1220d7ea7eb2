#include "aha/methods/region_search.h"

namespace aha {

int64_t region_side(Classifier& target) {
  const int64_t side = target.info().input.size;
  if (target.prefix_tokens() == 0) return side <= 64 ? 8 : 14;
  const Tensor weights = target.head_weights();
  const Tensor any =
      torch::zeros({1, 3, side, side}, weights.defined() ? weights.options() : at::TensorOptions());
  return target.features(any, {"block.0"})[0].size(2);
}

Tensor class_probabilities(Classifier& target, const Tensor& images, int64_t wanted) {
  const int64_t n = images.size(0);
  const Tensor region = torch::zeros({images.size(2), images.size(3)}, torch::kInt32);
  return target
      .perturbed_scores({images, torch::zeros_like(images), region, torch::ones({n, 1, 1}),
                         torch::full({n}, wanted, torch::kInt64)},
                        false)
      .scores.squeeze(1);
}

HiddenRegions::HiddenRegions(Classifier& target, const Tensor& image, const std::vector<Tensor>& references,
                             const RegionGrid& grid, int64_t wanted)
    : target_(target), grid_(grid) {
  const auto R = static_cast<int64_t>(references.size());
  images_.reference = torch::stack(references);  // (R, 3, H, W)
  images_.pixels = image.unsqueeze(0).expand_as(images_.reference).contiguous();
  images_.region = grid.region_of_pixel().view({grid.height, grid.width});
  images_.classes = torch::full({R}, wanted, torch::kInt64);
}

Tensor HiddenRegions::probabilities(const Tensor& shown, const Context& context) {
  context.cancel->check();
  const int64_t R = images_.pixels.size(0);
  PerturbedImages asked = images_;
  asked.keep = shown.unsqueeze(0).expand({R, -1, -1}).contiguous();  // (R, S, K)
  forwards_ += R * shown.size(0);
  return target_.perturbed_scores(asked, false).scores;
}

}  // namespace aha
