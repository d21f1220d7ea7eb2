#include "aha/models/prior.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/models/chefer.h"
#include "aha/models/target_gradient.h"

namespace aha {
namespace {

// (B, n) -> (B, n): 0, 1 / (n - 1), ..., 1 in the order of the values. Of equal ones the first is lower.
Tensor ranks(const Tensor& values) {
  const auto order = std::get<1>(values.sort(/*stable=*/true, 1, /*descending=*/false));
  const auto steps = torch::linspace(0, 1, values.size(1), values.options());
  return torch::empty_like(values).scatter_(1, order, steps.expand_as(values));
}

}  // namespace

void check_prior(const std::string& name, const Classifier& target) {
  if (name == "none") return;
  if (name != "chefer") throw unknown_name_error("prior", name, kPriors);
  if (attention_taps(target).empty())
    throw input_error("--prior {}: expected a target with attention, found {} ({})", name, target.info().name, target.info().architecture);
}

Tensor prior_map(const std::string& name, Classifier& target, const Tensor& pixels, const Tensor& classes) {
  check_prior(name, target);
  const Tensor order = ranks(chefer_values(target, pixels, classes));  // (B, n)
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(order.size(1)))));
  if (side * side != order.size(1)) throw input_error("prior {}: expected a square grid of patches, found {}", name, order.size(1));
  return at::upsample_bilinear2d(order.view({-1, 1, side, side}), {pixels.size(2), pixels.size(3)}, false).squeeze(1);
}

}  // namespace aha
