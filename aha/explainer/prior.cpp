#include "aha/explainer/prior.h"

#include "aha/attribution/cam.h"
#include "aha/attribution/chefer.h"
#include "aha/attribution/logit_attribution.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/base/square_side.h"

namespace aha {
namespace {

// (B, n) -> (B, n): 0, 1 / (n - 1), ..., 1 in the order of the values. Of equal ones the first is lower.
Tensor ranks(const Tensor& values) {
  const auto order = std::get<1>(values.sort(/*stable=*/true, 1, /*descending=*/false));
  const auto steps = torch::linspace(0, 1, values.size(1), values.options());
  return torch::empty_like(values).scatter_(1, order, steps.expand_as(values));
}

}  // namespace

TokenRelevance prior_rule(const std::string& name) {
  return name == "logit-attribution" ? TokenRelevance::kDirect : TokenRelevance::kChefer;
}

void check_prior(const std::string& name, const Classifier& target) {
  if (name == "none") return;
  if (std::ranges::find(kPriors, name) == kPriors.end()) throw unknown_name_error("prior", name, kPriors);
  if (name == "cam") {
    if (feature_tap(target).empty())
      throw input_error("--prior cam: expected a ConvNet with pooled feature maps, found {} ({})",
                        target.info().name, target.info().architecture);
    return;
  }
  if (attention_taps(target).empty())
    throw input_error("--prior {}: expected a target with attention, found {} ({})", name, target.info().name,
                      target.info().architecture);
}

Tensor prior_map(const std::string& name, Classifier& target, const Tensor& pixels, const Tensor& classes) {
  check_prior(name, target);
  if (name == "cam")
    return cam_prior(target, target.features(pixels, {feature_tap(target)})[0], classes, pixels.size(2),
                     pixels.size(3));
  const Tensor values = prior_rule(name) == TokenRelevance::kDirect ? logit_values(target, pixels, classes)
                                                                    : chefer_values(target, pixels, classes);
  return map_of_order(values, pixels.size(2), pixels.size(3));
}

Tensor cam_prior(Classifier& target, const Tensor& features, const Tensor& classes, int64_t height,
                 int64_t width) {
  return map_of_order(cam_values(target, features, classes).flatten(1), height, width);
}

Tensor map_of_order(const Tensor& values, int64_t height, int64_t width) {
  const auto side = square_side(values.size(1));
  if (side == 0) throw input_error("prior: expected a square grid of patches, found {}", values.size(1));
  return at::upsample_bilinear2d(ranks(values).view({-1, 1, side, side}), {height, width}, false).squeeze(1);
}

}  // namespace aha
