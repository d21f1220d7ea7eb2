// gradient: |d y_t / d x|, the largest over the channels or their sum; or the sum with its sign.
// smoothgrad: the gradient averaged over noisy copies of the image first; noise of `noise` times the range
// of the normalized image. The copies of an image go through the network together.
#include <array>
#include <cmath>

#include "aha/attribution/target_gradient.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"
#include "aha/methods/method_records.h"

namespace aha {
namespace {

constexpr uint64_t kSmoothGradPurpose = 0x736d6f6f;

constexpr int64_t kNoisyAtOnce = 8;

void add_channels(Fields& fields, std::string& channels) {
  fields
      .add("channels", channels, "the largest magnitude of the channels, their sum, or the sum with its sign")
      .choices({"max", "sum", "signed"});
}

Tensor over_channels(const Tensor& gradient, const std::string& channels) {
  if (channels == "signed") return gradient.sum(1);
  return channels == "max" ? gradient.abs().amax(1) : gradient.abs().sum(1);
}

class Gradient : public Method {
 public:
  Fields fields() override {
    Fields list;
    add_channels(list, channels_);
    return list;
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    return {over_channels(input_gradient(*target_, pixels, classes), channels_), Passes{1, 1}};
  }

 private:
  std::string channels_ = "max";
};

class SmoothGrad : public Method {
 public:
  Fields fields() override {
    Fields list;
    list.add("samples", samples_, "noisy copies an image")
        .range(1, 100000)
        .add("noise", noise_, "standard deviation of the noise as a share of the image's range")
        .range(0, 10)
        .add("average", average_, "of the gradients as they are, of their magnitudes, or of their squares")
        .choices({"signed", "magnitude", "square"});
    add_channels(list, channels_);
    return list;
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override {
    const int64_t B = pixels.size(0);
    auto progress = context.progress("smoothgrad", B * samples_);
    std::vector<Tensor> means;
    for (int64_t b = 0; b < B; ++b)  // so that an image's gradients do not depend on its batch mates
      means.push_back(mean_gradient(pixels.narrow(0, b, 1), classes.narrow(0, b, 1),
                                    Rng(context.seed, stream_id({kSmoothGradPurpose, streams[b]})), progress,
                                    context));
    const auto passes = static_cast<double>(samples_);
    return {over_channels(torch::cat(means), channels_), Passes{passes, passes}};
  }

 private:
  // (1, 3, H, W)
  Tensor mean_gradient(const Tensor& image, const Tensor& wanted, const Rng& rng, Progress& progress,
                       const Context& context) {
    const auto x = normalized(image, target_->info().input).detach();
    const auto sigma =
        noise_ * (x.max() - x.min()) * channel_std(*target_, image);  // (1, 3, 1, 1), in pixels
    auto sum = torch::zeros_like(image);
    for (int64_t first = 0; first < samples_; first += kNoisyAtOnce) {
      context.cancel->check();
      const auto n = std::min(kNoisyAtOnce, samples_ - first);
      const auto gradient =
          input_gradient(*target_, image + sigma * noise_like(image, first, n, rng), wanted.expand({n}));
      sum += (average_ == "signed"      ? gradient
              : average_ == "magnitude" ? gradient.abs()
                                        : gradient.square())
                 .sum(0, true);
      progress.advance(n);
    }
    return sum / samples_;
  }

  // Standard normal numbers of samples first..first + n - 1, four from each block of random bits.
  static Tensor noise_like(const Tensor& image, int64_t first, int64_t n, const Rng& rng) {
    auto noise = torch::empty({n, image.size(1), image.size(2), image.size(3)});
    const int64_t each = image.numel(), blocks = (each + 3) / 4;
    float* all = noise.data_ptr<float>();
    parallel_for(n, [&](int64_t i, int) {
      for (int64_t block = 0; block < blocks; ++block) {
        const auto bits = rng.block(static_cast<uint64_t>((first + i) * blocks + block));
        std::array<float, 4> four;
        for (int pair = 0; pair < 2; ++pair) {  // Box-Muller
          const float radius = std::sqrt(-2 * std::log(Rng::unit_from_bits(bits[2 * pair])));
          const float angle = 6.2831853f * Rng::unit_from_bits(bits[2 * pair + 1]);
          four[2 * pair] = radius * std::cos(angle);
          four[2 * pair + 1] = radius * std::sin(angle);
        }
        std::copy_n(four.begin(), std::min<int64_t>(4, each - 4 * block), all + i * each + 4 * block);
      }
    });
    return noise.to(image.options());
  }

  int64_t samples_ = 50;
  double noise_ = 0.15;
  std::string average_ = "signed", channels_ = "max";
};

}  // namespace

MethodRecord gradient_method() {
  return {"gradient",
          "magnitude of the logit's gradient by the input",
          "Simonyan et al. 2014, arXiv:1312.6034",
          "gradient",
          fits_any,
          [] { return std::unique_ptr<Method>(new Gradient); },
          "Not in the paper's tables. By the normalized input, as public code has it."};
}

MethodRecord smoothgrad_method() {
  return {
      "smoothgrad",
      "gradients averaged over noisy copies of the image",
      "Smilkov et al. 2017, arXiv:1706.03825",
      "gradient",
      fits_any,
      [] { return std::unique_ptr<Method>(new SmoothGrad); },
      "Not in the paper's tables. Noise of 0.15 of the range: the authors recommend 0.1 to 0.2. Captum adds "
      "noise of standard deviation 1 unless told otherwise. average=square is what later work calls "
      "SmoothGrad "
      "squared."};
}

}  // namespace aha
