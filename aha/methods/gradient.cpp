// gradient: |d y_t / d x|, the largest over the channels or their sum.
// smoothgrad: the gradient averaged over noisy copies of the image first; noise of `noise` times the range
// of the normalized image.
#include <array>
#include <cmath>

#include "aha/attribution/target_gradient.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"
#include "aha/methods/method_records.h"

namespace aha {
namespace {

constexpr uint64_t kSmoothGradPurpose = 0x736d6f6f;

Tensor over_channels(const Tensor& gradient, const std::string& channels) {
  return channels == "max" ? gradient.abs().amax(1) : gradient.abs().sum(1);
}

class Gradient : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("channels", channels_, "how the channels' magnitudes become one value")
        .choices({"max", "sum"});
  }
  void prepare(const MethodContext& context) override { target_ = &context.target; }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    return {over_channels(input_gradient(*target_, pixels, classes), channels_), Passes{1, 1}};
  }

 private:
  Classifier* target_ = nullptr;
  std::string channels_ = "max";
};

class SmoothGrad : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("samples", samples_, "noisy copies an image")
        .range(1, 100000)
        .add("noise", noise_, "standard deviation of the noise as a share of the image's range")
        .range(0, 10)
        .add("channels", channels_, "how the channels' magnitudes become one value")
        .choices({"max", "sum"});
  }
  void prepare(const MethodContext& context) override { target_ = &context.target; }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override {
    const auto std = channel_std(*target_, pixels);
    const auto x = normalized(pixels, target_->info().input).detach();
    const auto sigma =
        noise_ * (x.amax({1, 2, 3}, true) - x.amin({1, 2, 3}, true)) * std;  // (B, 3, 1, 1), in pixels
    auto sum = torch::zeros_like(pixels);
    for (int i = 0; i < samples_; ++i) {
      context.cancel->check();
      sum += input_gradient(*target_, pixels + sigma * noise_like(pixels, i, streams, context.seed), classes);
    }
    const auto passes = static_cast<double>(samples_);
    return {over_channels(sum / samples_, channels_), Passes{passes, passes}};
  }

 private:
  // Standard normal numbers of the given sample, four from each block of random bits.
  static Tensor noise_like(const Tensor& pixels, int sample, std::span<const uint64_t> streams,
                           uint64_t seed) {
    auto noise = torch::empty(pixels.sizes(), torch::kFloat32);
    const int64_t each = noise[0].numel(), blocks = (each + 3) / 4;
    float* all = noise.data_ptr<float>();
    parallel_for(noise.size(0), [&](int64_t b, int) {
      const Rng rng(seed, stream_id({kSmoothGradPurpose, streams[b]}));
      for (int64_t block = 0; block < blocks; ++block) {
        const auto bits = rng.block(static_cast<uint64_t>(sample * blocks + block));
        std::array<float, 4> four;
        for (int pair = 0; pair < 2; ++pair) {  // Box-Muller
          const float radius = std::sqrt(-2 * std::log(Rng::unit_from_bits(bits[2 * pair])));
          const float angle = 6.2831853f * Rng::unit_from_bits(bits[2 * pair + 1]);
          four[2 * pair] = radius * std::cos(angle);
          four[2 * pair + 1] = radius * std::sin(angle);
        }
        std::copy_n(four.begin(), std::min<int64_t>(4, each - 4 * block), all + b * each + 4 * block);
      }
    });
    return noise.to(pixels.options());
  }

  Classifier* target_ = nullptr;
  int samples_ = 50;
  double noise_ = 0.15;
  std::string channels_ = "max";
};

}  // namespace

MethodRecord gradient_method() {
  return {"gradient",
          "magnitude of the logit's gradient by the input",
          "Simonyan et al. 2014, arXiv:1312.6034",
          "gradient",
          fits_any,
          [] { return std::unique_ptr<Method>(new Gradient); }};
}

MethodRecord smoothgrad_method() {
  return {"smoothgrad",
          "gradients averaged over noisy copies of the image",
          "Smilkov et al. 2017, arXiv:1706.03825",
          "gradient",
          fits_any,
          [] { return std::unique_ptr<Method>(new SmoothGrad); }};
}

}  // namespace aha
