// scorecam: feature channels weighted by the class's logit while the image shows through the channel alone.
//
//   u_c = channel c at the image's size, scaled to [0, 1]
//   w = softmax over the channels of y_t(x * u_c), hidden pixels being zero for the network
//   M = sum_c w_c a_c
//
// Cost: C + 1 forward passes (769 for ConvNeXt-S). Logits several units apart make the softmax nearly
// one-hot: the map is often a single channel.
#include "aha/attribution/target_gradient.h"
#include "aha/methods/cam_maps.h"
#include "aha/methods/method_records.h"
#include "aha/methods/patch_maps.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

constexpr int64_t kScoreCamChunk = 32;  // masks at once: 6 MB at 224 x 224

class ScoreCam : public Method {
 public:
  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context& context) override {
    const torch::NoGradGuard no_grad;
    const Tensor features = target_->features(pixels, {feature_tap(*target_)})[0];  // (B, C, h, w)
    std::vector<Tensor> maps;
    for (int64_t b = 0; b < pixels.size(0); ++b) {
      const Tensor scores =
          scores_behind(features[b], pixels.narrow(0, b, 1), classes.narrow(0, b, 1), context);  // (1, C)
      const OneThread same_bits_for_any_number_of_threads;
      maps.push_back(weighted_channels(features.narrow(0, b, 1),
                                       scorecam_weights(scores.to(torch::kFloat64)).to(features.options())));
    }
    return {cam_finished(torch::cat(maps), pixels.size(2), pixels.size(3)),
            Passes{static_cast<double>(features.size(1) + 1), 0}};
  }

 private:
  // channels (C, h, w), one image -> (1, C)
  Tensor scores_behind(const Tensor& channels, const Tensor& image, const Tensor& wanted,
                       const Context& context) {
    const int64_t C = channels.size(0), H = image.size(2), W = image.size(3);
    // Zero of the normalized input is the normalization's mean as a color.
    const auto& mean = target_->info().input.mean;
    PerturbedImages behind;
    behind.pixels = image;
    behind.reference = torch::tensor({mean[0], mean[1], mean[2]}, torch::kFloat64)
                           .to(image.options())
                           .view({1, 3, 1, 1})
                           .expand_as(image)
                           .contiguous();
    behind.region = torch::arange(H * W, torch::kInt32).view({H, W});  // each pixel by itself
    behind.classes = wanted;
    behind.score = Score::kLogit;
    std::vector<Tensor> scores;
    for (int64_t first = 0; first < C; first += kScoreCamChunk) {
      context.cancel->check();
      const auto masks = scorecam_masks(channels.slice(0, first, first + kScoreCamChunk), H, W);  // (n, H, W)
      behind.keep = masks.flatten(1).unsqueeze(0).cpu();  // (1, n, H * W)
      scores.push_back(target_->perturbed_scores(behind, false).scores);
    }
    return torch::cat(scores, 1);
  }
};

}  // namespace

MethodRecord scorecam_method() {
  return {"scorecam",
          "feature channels weighted by the logit of the image seen through each",
          "Wang et al. 2020, arXiv:1910.01279",
          "feature maps",
          has_feature_maps,
          [] { return std::unique_ptr<Method>(new ScoreCam); },
          "Plain logits, as pytorch-grad-cam has it; its paper subtracts those of a baseline image."};
}

}  // namespace aha
