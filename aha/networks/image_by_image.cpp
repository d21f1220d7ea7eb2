#include "aha/networks/image_by_image.h"

#include "aha/tensor/one_thread_each.h"

namespace aha {

Tensor ImageByImage::logits(const Tensor& pixels) {
  if (torch::GradMode::is_enabled() && pixels.requires_grad()) return run(pixels, nullptr);
  std::vector<Tensor> rows(pixels.size(0));
  one_thread_each(pixels.size(0), [&](int64_t b) { rows[b] = run(pixels.narrow(0, b, 1), nullptr); });
  return torch::cat(rows);
}

std::vector<Tensor> ImageByImage::taps(const Tensor& pixels, const std::vector<std::string>& names) {
  std::vector<std::vector<Tensor>> parts(names.size(), std::vector<Tensor>(pixels.size(0)));
  one_thread_each(pixels.size(0), [&](int64_t b) {
    const torch::NoGradGuard no_grad;
    Taps kept(names);
    run(pixels.narrow(0, b, 1), &kept);
    for (size_t i = 0; i < names.size(); ++i) parts[i][b] = kept.at(names[i]);
  });
  std::vector<Tensor> values;
  for (const auto& part : parts) values.push_back(torch::cat(part));
  return values;
}

}  // namespace aha
