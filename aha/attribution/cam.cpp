#include "aha/attribution/cam.h"

#include "aha/tensor/one_thread_each.h"

namespace aha {

Tensor values_per_image(const Tensor& features, const std::function<Tensor(int64_t, const Tensor&)>& raw) {
  const int64_t B = features.size(0);
  std::vector<Tensor> maps(static_cast<size_t>(B));
  const auto piece = [&](int64_t b) { maps[static_cast<size_t>(b)] = raw(b, features.narrow(0, b, 1)); };
  if (features.is_cpu())
    one_thread_each(B, piece);
  else
    for (int64_t b = 0; b < B; ++b) piece(b);
  return torch::cat(maps).detach();
}

Tensor cam_values(Classifier& target, const Tensor& features, const Tensor& classes) {
  return values_per_image(features, [&](int64_t b, const Tensor& one) {
    Tensor weights = torch::zeros({target.info().classes}, one.options());
    weights[classes[b].item<int64_t>()] = 1;
    const auto places = static_cast<double>(one.size(2) * one.size(3));
    return weighted_channels(one, target.head_direction(one.mean({2, 3}), weights) / places);
  });
}

}  // namespace aha
