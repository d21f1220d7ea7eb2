#include "aha/metrics/noisy_images.h"

#include <algorithm>

#include "aha/base/rng.h"

namespace aha {
namespace {

template <class Draw>
Tensor with_noise(const MetricImages& images, uint64_t seed, uint64_t purpose, int i, const Draw& draw) {
  Tensor out = images.pixels.to(torch::kCPU, torch::kFloat32).clone(at::MemoryFormat::Contiguous);
  const int64_t each = out[0].numel();
  for (int64_t b = 0; b < images.size(); ++b) {
    Rng rng(seed, stream_id({purpose, images.streams[b], static_cast<uint64_t>(i)}));
    float* x = out.data_ptr<float>() + b * each;
    for (int64_t p = 0; p < each; ++p) x[p] = std::clamp(x[p] + static_cast<float>(draw(rng)), 0.f, 1.f);
  }
  return out.to(images.pixels.device());
}

}  // namespace

Tensor with_uniform_noise(const MetricImages& images, double radius, uint64_t seed, uint64_t purpose, int i) {
  return with_noise(images, seed, purpose, i, [=](Rng& rng) { return rng.uniform(-radius, radius); });
}

Tensor with_normal_noise(const MetricImages& images, double deviation, uint64_t seed, uint64_t purpose,
                         int i) {
  return with_noise(images, seed, purpose, i, [=](Rng& rng) { return deviation * rng.normal(); });
}

}  // namespace aha
