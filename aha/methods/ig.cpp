// ig: integrated gradients.
//
// space=input, the textbook method: |sum over channels of (x - b) * mean_a d y_t(b + a (x - b)) / d x|, b the
// mean color (0 after normalization) or black. space=attention, what the paper's ViT tables call IG: the
// gradient by the last block's attention, averaged along the path from the mean color; relu, mean over
// heads, class row. No factor of the input.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"
#include "aha/methods/path_integral.h"

namespace aha {
namespace {

class IntegratedGradients : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("space", space_, "input: the textbook method; attention: what the paper's ViT tables call IG")
        .choices({"input", "attention"})
        .add("steps", steps_, "places on the path; 0 = 50 middles (input), 20 with both ends (attention)")
        .range(0, 100000)
        .add("baseline", baseline_, "where the path begins (input space)")
        .choices({"mean", "black"})
        .add("signed", signed_, "rank negative evidence last instead of by its magnitude (input space)");
  }

  void prepare(const MethodContext& context) override {
    target_ = &context.target;
    if (space_ == "attention" && !has_attention(context))
      throw input_error(
          "method ig:space=attention needs attention, which {} ({}) does not offer; ig:space=input fits it",
          target_->info().name, target_->info().architecture);
    if (space_ == "attention" && baseline_ != "mean")
      throw input_error("method ig: expected baseline=mean with space=attention, found {}", baseline_);
    if (steps_ == 0) steps_ = space_ == "input" ? 50 : 20;
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context& context) override {
    const auto mean = mean_color(*target_, pixels);
    const auto passes = static_cast<double>(steps_);
    return {space_ == "input" ? input_maps(pixels, classes, mean, context)
                              : attention_maps(pixels, classes, mean, context),
            Passes{passes, passes}};
  }

 private:
  Tensor input_maps(const Tensor& pixels, const Tensor& classes, const Tensor& mean, const Context& context) {
    const auto std = channel_std(*target_, pixels);
    const auto baseline = baseline_ == "mean" ? mean : torch::zeros_like(mean);
    const auto evidence =
        integrated_gradient(pixels, baseline, path_places(steps_, false), [&](const Tensor& x) {
          context.cancel->check();
          return input_gradient(*target_, x, classes) / std;  // by pixels, as the path is
        });
    const auto map = evidence.sum(1);  // (B, H, W)
    return signed_ ? map : map.abs();
  }

  Tensor attention_maps(const Tensor& pixels, const Tensor& classes, const Tensor& mean,
                        const Context& context) {
    const std::string last = attention_taps(*target_).back();
    Tensor sum;
    for (const double place : path_places(steps_, true)) {
      context.cancel->check();
      const auto gradient =
          tapped_gradients(*target_, mean + place * (pixels - mean), classes, {last}).gradients[0];
      sum = sum.defined() ? sum + gradient : gradient;
    }
    const auto patches = attention_gradient_patches(sum / steps_, target_->prefix_tokens());
    return upsampled(grid_from_patches(patches), pixels.size(2), pixels.size(3));
  }

  Classifier* target_ = nullptr;
  std::string space_ = "input", baseline_ = "mean";
  int steps_ = 0;
  bool signed_ = false;
};

}  // namespace

std::vector<double> path_places(int count, bool ends_included) {
  std::vector<double> places;
  for (int i = 0; i < count; ++i)
    places.push_back(!ends_included ? (i + 0.5) / count
                     : count > 1    ? static_cast<double>(i) / (count - 1)
                                    : 1.0);
  return places;
}

Tensor integrated_gradient(const Tensor& x, const Tensor& baseline, const std::vector<double>& places,
                           const std::function<Tensor(const Tensor&)>& gradient) {
  auto sum = torch::zeros_like(x);
  for (const double place : places) sum += gradient(baseline + place * (x - baseline));
  return (x - baseline) * sum / static_cast<double>(places.size());
}

MethodRecord ig_method() {
  return {"ig",
          "integrated gradients, of the input or of the last attention",
          "Sundararajan et al. 2017, arXiv:1703.01365",
          "gradient",
          fits_any,
          [] { return std::unique_ptr<Method>(new IntegratedGradients); }};
}

}  // namespace aha
