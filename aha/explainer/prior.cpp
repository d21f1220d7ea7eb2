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

int prior_parts(const std::string& name, const Classifier& target) {
  if (name == "cam") return 1;
  return name == "logit-attribution" ? blocks_with_attention(target) : 0;
}

Tensor scaled_parts(const Tensor& values) {
  const auto side = square_side(values.size(2));
  if (side == 0) throw input_error("prior: expected a square grid of patches, found {}", values.size(2));
  const Tensor scale = values.std(2, false, true) + 0.1 * values.sum(1, true).std(2, false, true) + 1e-12;
  return (values / scale).unflatten(2, {side, side});
}

PriorMaps prior_maps(const std::string& name, Classifier& target, const Tensor& pixels, const Tensor& classes,
                     bool with_parts) {
  check_prior(name, target);
  const int64_t H = pixels.size(2), W = pixels.size(3);
  if (name == "cam")
    return cam_prior(target, target.features(pixels, {feature_tap(target)})[0], classes, H, W);
  if (name == "chefer") return {map_of_order(chefer_values(target, pixels, classes), H, W), {}};
  if (!with_parts) return {map_of_order(logit_values(target, pixels, classes), H, W), {}};
  const Tensor shares = logit_shares(target, pixels, classes);
  return {map_of_order(shares.sum(1), H, W), scaled_parts(shares)};
}

PriorMaps cam_prior(Classifier& target, const Tensor& features, const Tensor& classes, int64_t height,
                    int64_t width) {
  const Tensor values = cam_values(target, features, classes).flatten(1);
  return {map_of_order(values, height, width), scaled_parts(values.unsqueeze(1))};
}

Tensor map_of_order(const Tensor& values, int64_t height, int64_t width) {
  const auto side = square_side(values.size(1));
  if (side == 0) throw input_error("prior: expected a square grid of patches, found {}", values.size(1));
  return at::upsample_bilinear2d(ranks(values).view({-1, 1, side, side}), {height, width}, false).squeeze(1);
}

}  // namespace aha
