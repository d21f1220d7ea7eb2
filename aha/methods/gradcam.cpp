// gradcam: Grad-CAM in the form that fits the target.
//
// form=features: channels of the feature maps weighted by their mean gradient; a ConvNet's last stage, or a
// ViT's tokens after norm1 of its last block (after the block itself the patches' gradients are exactly zero:
// only the class token feeds the head). form=attention, a ViT's default and the paper's tables: class row of
// the last attention times its gradient, patch by patch. form=pooled: the same with the gradient averaged
// over the patches of a head first, which is nearer to the original idea.
#include "aha/attribution/attention_maps.h"
#include "aha/attribution/class_row.h"
#include "aha/attribution/target_gradient.h"
#include "aha/base/error.h"
#include "aha/methods/cam_maps.h"
#include "aha/methods/feature_cam.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"

namespace aha {
namespace {

class GradCam : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("form", form_, "auto: attention for a transformer, features for a ConvNet")
        .choices({"auto", "features", "attention", "pooled"});
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    const bool transformer = has_attention(context);
    if (form_ == "auto") form_ = transformer ? "attention" : "features";
    if (form_ != "features" && !transformer)
      throw input_error(
          "method gradcam:form={} needs attention, which {} ({}) does not offer; gradcam:form=features fits "
          "it",
          form_, target_->info().name, target_->info().architecture);
    blocks_ = blocks_with_attention(*target_);
    tap_ = fmt::format("block.{}.norm1", blocks_ - 1);
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context&) override {
    if (form_ != "features") return {attention_maps(pixels, classes), Passes{1, 1.0 / blocks_}};
    if (blocks_ == 0) return {feature_cam(*target_, pixels, classes, gradcam_raw), Passes{1, 0}};
    return {token_maps(pixels, classes), Passes{1, 1.0 / blocks_}};  // only the last block backward
  }

 private:
  Tensor attention_maps(const Tensor& pixels, const Tensor& classes) {
    const auto patches =
        follow_class_row(*target_, pixels, classes, {AttentionVisit::Gradient::kLogit, blocks_ - 1},
                         [&](const Tensor&, int, const Tensor& a, const Tensor& g) {
                           return attention_cam(a, g, target_->prefix_tokens(), form_ == "pooled");
                         });  // (B, n)
    return upsampled(min_max(grid_from_patches(patches)), pixels.size(2), pixels.size(3));
  }

  Tensor token_maps(const Tensor& pixels, const Tensor& classes) {
    const auto H = pixels.size(2), W = pixels.size(3);
    const auto prefix = target_->prefix_tokens();
    const auto tapped = tapped_gradients(*target_, pixels, classes, {tap_});
    const auto &a = tapped.values[0], &q = tapped.gradients[0];
    return cam_finished(gradcam_raw(maps_from_tokens(a, prefix), maps_from_tokens(q, prefix)), H, W);
  }

  // (B, T, D) -> (B, D, g, g)
  static Tensor maps_from_tokens(const Tensor& tokens, int64_t prefix) {
    const auto channels = tokens.slice(1, prefix).transpose(1, 2);  // (B, D, n)
    const auto grid = grid_from_patches(channels.flatten(0, 1));    // (B * D, g, g)
    return grid.view({channels.size(0), channels.size(1), grid.size(1), grid.size(2)});
  }

  std::string form_ = "auto", tap_;  // of the tokens
  int blocks_ = 0;                   // of a transformer; 0 = a ConvNet
};

}  // namespace

MethodRecord gradcam_method() {
  return {"gradcam",
          "feature channels, or the last attention, weighted by their gradient",
          "Selvaraju et al. 2017, arXiv:1610.02391",
          "attention or feature maps",
          has_attention_or_feature_maps,
          [] { return std::unique_ptr<Method>(new GradCam); },
          "The paper's ViT tables most probably used form=attention, the MDA code's; a few of its maps there "
          "are constant and rank nothing. form=pooled is Chefer's, form=features pytorch-grad-cam's."};
}

}  // namespace aha
