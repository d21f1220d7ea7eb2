// gradcam++, hirescam, layercam: three formulas on the same features and gradients. (gradcam: gradcam.cpp,
// because it has forms for transformers too.)
#include "aha/methods/feature_cam.h"

#include "aha/attribution/cam.h"
#include "aha/attribution/target_gradient.h"
#include "aha/methods/cam_maps.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

template <RawCam kRaw>
class FeatureCam : public Method {
 public:
  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    return {feature_cam(*target_, pixels, classes, kRaw), Passes{1, 0}};
  }
};

template <RawCam kRaw>
std::unique_ptr<Method> make_feature_cam() {
  return std::make_unique<FeatureCam<kRaw>>();
}

}  // namespace

Tensor feature_cam(Classifier& target, const Tensor& pixels,
                   const std::function<Tensor(int64_t, const Tensor&)>& raw) {
  const Tensor features = target.features(pixels, {feature_tap(target)})[0];  // (B, C, h, w)
  return cam_finished(values_per_image(features, raw), pixels.size(2), pixels.size(3));
}

Tensor feature_cam(Classifier& target, const Tensor& pixels, const Tensor& classes, RawCam raw) {
  return feature_cam(target, pixels, [&](int64_t b, const Tensor& features) {
    const torch::AutoGradMode with_grad(true);
    const Tensor a = features.detach().clone().requires_grad_(true);
    const Tensor logit = target.logits_from_features(a)[0][classes[b].item<int64_t>()];
    const Tensor q = torch::autograd::grad({logit}, {a})[0];
    return raw(a.detach(), q);
  });
}

MethodRecord gradcam_plus_method() {
  return {"gradcam++",
          "feature channels weighted by their positive gradients, large ones more",
          "Chattopadhay et al. 2018, arXiv:1710.11063",
          "feature maps",
          has_feature_maps,
          make_feature_cam<gradcam_plus_raw>,
          "Powers of the logit's gradient, as pytorch-grad-cam has it; the paper derives them for the "
          "exponential of the score."};
}

MethodRecord hirescam_method() {
  return {"hirescam",
          "feature maps times their gradients, place by place",
          "Draelos and Carin 2020, arXiv:2011.08891",
          "feature maps",
          has_feature_maps,
          make_feature_cam<hirescam_raw>,
          "The same map as gradcam here: pooling follows the features, so that a channel's gradient is the "
          "same everywhere."};
}

MethodRecord layercam_method() {
  return {"layercam",
          "feature maps times their positive gradients, place by place",
          "Jiang et al. 2021, IEEE Transactions on Image Processing 30",
          "feature maps",
          has_feature_maps,
          make_feature_cam<layercam_raw>,
          "Not in the paper's tables."};
}

}  // namespace aha
