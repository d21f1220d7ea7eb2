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

// Libtorch's last bits differ with the number of images, those of the engine (logits without taps) do not: on
// libtorch each image by itself.
template <class Part>
void for_each_part(const Tensor& pixels, bool on_engine, const Part& part) {
  const int64_t B = pixels.size(0), together = pixels.is_cpu() && !on_engine ? 1 : B;
  for (int64_t first = 0; first < B; first += together) part(first, together);
}

}  // namespace

Tensor chosen(const Tensor& logits, const Tensor& classes) {
  return logits.gather(1, classes.unsqueeze(1)).squeeze(1);
}

Tensor mean_color(const Classifier& target, const Tensor& like) {
  return per_channel(target.info().mean_color, like);
}
Tensor baseline_color(const Classifier& target, const std::string& name, const Tensor& like) {
  return per_channel(name == "zero"   ? target.info().input.mean
                     : name == "mean" ? target.info().mean_color
                                      : std::array<double, 3>{0, 0, 0},
                     like);
}
Tensor channel_std(const Classifier& target, const Tensor& like) {
  return per_channel(target.info().input.std, like);
}

Tensor input_gradient(Classifier& target, const Tensor& pixels, const Tensor& classes) {
  const torch::AutoGradMode with_grad(true);
  std::vector<Tensor> out;
  for_each_part(pixels, target.engine_memory().has_value(), [&](int64_t first, int64_t count) {
    const auto x = pixels.narrow(0, first, count).detach().clone().requires_grad_(true);
    const auto score = chosen(target.logits(x), classes.narrow(0, first, count)).sum();
    out.push_back(torch::autograd::grad({score}, {x})[0] * channel_std(target, x));
  });
  return torch::cat(out);
}

TappedGradients tapped_gradients(Classifier& target, const Tensor& pixels, const Tensor& classes,
                                 const std::vector<std::string>& names) {
  const torch::AutoGradMode with_grad(true);
  std::vector<std::vector<Tensor>> values(names.size()), gradients(names.size());
  for_each_part(pixels, false, [&](int64_t first, int64_t count) {
    Taps taps(names);
    const auto x = pixels.narrow(0, first, count).detach().clone().requires_grad_(true);
    const auto score = chosen(target.logits(x, &taps), classes.narrow(0, first, count)).sum();
    std::vector<Tensor> tapped;
    for (const auto& name : names) tapped.push_back(taps.at(name));
    const auto by_tap = torch::autograd::grad({score}, tapped);
    for (size_t i = 0; i < names.size(); ++i) {
      values[i].push_back(tapped[i].detach());
      gradients[i].push_back(by_tap[i]);
    }
  });
  TappedGradients out;
  for (size_t i = 0; i < names.size(); ++i) {
    out.values.push_back(torch::cat(values[i]));
    out.gradients.push_back(torch::cat(gradients[i]));
  }
  return out;
}

std::vector<Tensor> tapped_values(Classifier& target, const Tensor& pixels,
                                  const std::vector<std::string>& names) {
  const torch::NoGradGuard no_grad;
  std::vector<std::vector<Tensor>> values(names.size());
  for_each_part(pixels, false, [&](int64_t first, int64_t count) {
    Taps taps(names);
    target.logits(pixels.narrow(0, first, count), &taps);
    for (size_t i = 0; i < names.size(); ++i) values[i].push_back(taps.at(names[i]));
  });
  std::vector<Tensor> out;
  for (const auto& parts : values) out.push_back(torch::cat(parts));
  return out;
}

std::vector<std::string> attention_taps(const Classifier& target) {
  std::vector<std::string> out;
  for (const auto& name : target.tap_names())
    if (name.ends_with(".attention")) out.push_back(name);
  return out;
}

int blocks_with_attention(const Classifier& target) {
  return static_cast<int>(attention_taps(target).size());
}

std::string feature_tap(const Classifier& target) {
  return offers(target, "features") ? "features" : "";
}

}  // namespace aha
