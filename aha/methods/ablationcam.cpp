// ablationcam: feature channels weighted by the share of the logit that is lost without them.
//
//   w_c = (y_t - y_t without channel c) / y_t,  M = sum_c w_c a_c
//
// Only pooling, norm and head run again: C rows of pooled features. ablation=library puts what
// pytorch-grad-cam puts in a channel's place (cam_maps.h). Behind a LayerNorm its -1e7 is the only thing that
// counts: every other channel becomes 1 / sqrt(C - 1), whatever the image. ablation=zero is the paper's.
#include "aha/attribution/target_gradient.h"
#include "aha/methods/cam_maps.h"
#include "aha/methods/feature_cam.h"
#include "aha/methods/method_records.h"

namespace aha {
namespace {

class AblationCam : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("ablation", ablation_, "what replaces a channel: library = 1e7 below the smallest feature")
        .choices({"library", "zero"});
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context& context) override {
    const auto raw = [&](int64_t b, const Tensor& features) {  // (1, C, h, w)
      const torch::NoGradGuard no_grad;
      context.cancel->check();
      const int64_t wanted = classes[b].item<int64_t>();
      const double value = ablation_ == "zero" ? 0 : library_ablation(features);
      const Tensor rows = ablated_pools(features[0], value);  // (C, C)
      const Tensor clean = target_->logits_from_features(features).select(1, wanted),
                   ablated = target_->logits_from_features(rows.unsqueeze(2).unsqueeze(3)).select(1, wanted);
      return weighted_channels(features, ablationcam_weights(clean, ablated.unsqueeze(0)));
    };
    return {feature_cam(*target_, pixels, raw), Passes{1, 0}};
  }

 private:
  std::string ablation_ = "library";
};

}  // namespace

MethodRecord ablationcam_method() {
  return {"ablationcam",
          "feature channels weighted by the share of the logit lost without them",
          "Desai and Ramaswamy 2020, WACV",
          "feature maps",
          has_feature_maps,
          [] { return std::unique_ptr<Method>(new AblationCam); },
          "The paper's ConvNeXt table most probably used ablation=library, pytorch-grad-cam's; "
          "ablation=zero is the original method."};
}

}  // namespace aha
