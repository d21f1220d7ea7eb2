// cam: the class activation map (attribution/cam.h).
#include "aha/attribution/cam.h"

#include "aha/attribution/target_gradient.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class Cam : public Method {
 public:
  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    const Tensor features = target_->features(pixels, {feature_tap(*target_)})[0];
    const Tensor raw = cam_values(*target_, features, classes);
    return {upsampled(raw, pixels.size(2), pixels.size(3)), Passes{1, 0}};
  }
};

}  // namespace

MethodRecord cam_method() {
  return {
      "cam",
      "feature channels weighted by the head's own weights for the class",
      "Zhou et al. 2016, arXiv:1512.04150",
      "feature maps",
      has_feature_maps,
      [] { return std::unique_ptr<Method>(new Cam); },
      "Not in the paper's tables. Signed: its sum over the places of the feature maps is the logit without "
      "its bias. gradcam is the same map with what is negative cut off, up to what a norm between pooling "
      "and head does."};
}

}  // namespace aha
