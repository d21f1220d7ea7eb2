#include "aha/attribution/target_gradient.h"

#include <algorithm>

namespace aha {
namespace {

Tensor per_channel(const std::array<double, 3>& values, const Tensor& like) {
  return torch::tensor({values[0], values[1], values[2]}, torch::kFloat64)
      .to(like.options())
      .view({1, 3, 1, 1});
}

bool offers(const Classifier& target, const std::string& name) {
  const auto names = target.tap_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Tensor chosen(const Tensor& logits, const Tensor& classes) {
  return logits.gather(1, classes.unsqueeze(1)).squeeze(1);
}

Tensor mean_color(const Classifier& target, const Tensor& like) {
  return per_channel(target.info().mean_color, like);
}
Tensor channel_std(const Classifier& target, const Tensor& like) {
  return per_channel(target.info().input.std, like);
}

Tensor input_gradient(Classifier& target, const Tensor& pixels, const Tensor& classes) {
  const torch::AutoGradMode with_grad(true);
  const auto x = pixels.detach().clone().requires_grad_(true);
  const auto score = chosen(target.logits(x), classes).sum();
  return torch::autograd::grad({score}, {x})[0] * channel_std(target, x);
}

TappedGradients tapped_gradients(Classifier& target, const Tensor& pixels, const Tensor& classes,
                                 const std::vector<std::string>& names) {
  const torch::AutoGradMode with_grad(true);
  Taps taps(names);
  const auto score =
      chosen(target.logits(pixels.detach().clone().requires_grad_(true), &taps), classes).sum();
  TappedGradients out;
  for (const auto& name : names) out.values.push_back(taps.at(name));
  out.gradients = torch::autograd::grad({score}, out.values);
  for (auto& value : out.values) value = value.detach();
  return out;
}

std::vector<Tensor> tapped_values(Classifier& target, const Tensor& pixels,
                                  const std::vector<std::string>& names) {
  const torch::NoGradGuard no_grad;
  Taps taps(names);
  target.logits(pixels, &taps);
  std::vector<Tensor> out;
  for (const auto& name : names) out.push_back(taps.at(name));
  return out;
}

std::vector<std::string> attention_taps(const Classifier& target) {
  std::vector<std::string> out;
  for (const auto& name : target.tap_names())
    if (name.ends_with(".attention")) out.push_back(name);
  return out;
}

std::string feature_tap(const Classifier& target) {
  return offers(target, "features") ? "features" : "";
}

}  // namespace aha
