// cam: the class activation map. A ConvNet that ends in global average pooling and a linear layer has a logit
// that is a sum over places:
//
//   logit_t - bias_t = sum_ij (w_t . a_ij) / (h w)
//
// With a LayerNorm between pooling and head (ConvNeXt) the same holds while its standard deviation is held
// fixed: w_t becomes d logit_t / d pooled (Classifier::head_direction), and the norm's bias joins the head's.
#include "aha/methods/cam_maps.h"
#include "aha/methods/feature_cam.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class Cam : public Method {
 public:
  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    const Tensor raw = feature_values(*target_, pixels, [&](int64_t b, const Tensor& features) {
      Tensor weights = torch::zeros({target_->info().classes}, features.options());
      weights[classes[b].item<int64_t>()] = 1;
      const auto places = static_cast<double>(features.size(2) * features.size(3));
      return weighted_channels(features, target_->head_direction(features.mean({2, 3}), weights) / places);
    });
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
