// ConvNeXt as a network family.
#include "aha/networks/convnext.h"
#include "aha/networks/family.h"
#include "aha/weights/names_rules.h"

namespace aha {
namespace {

ConvNextConfig convnext_of(std::vector<int> depths, int width) {
  ConvNextConfig c;
  c.depths = std::move(depths);
  c.widths = {width, 2 * width, 4 * width, 8 * width};
  return c;
}

ConvNextConfig small_convnext_of(std::vector<int> depths, std::vector<int> widths, int stem_stride) {
  ConvNextConfig c;
  c.image_size = 32;
  c.stem_stride = stem_stride;
  c.depths = std::move(depths);
  c.widths = std::move(widths);
  c.classes = 10;
  return c;
}

}  // namespace

NetworkFamily convnext_family() {
  NetworkFamily family;
  family.name = "convnext";
  family.described = "ConvNeXt";
  family.free_keys = {"classes", "image_size", "eps", "head_eps"};
  family.sizes = {
      classifier_of("convnext_tiny", "ConvNeXt-Tiny, 29 M parameters", convnext_of({3, 3, 9, 3}, 96)),
      classifier_of("convnext_small", "ConvNeXt-Small, 50 M parameters", convnext_of({3, 3, 27, 3}, 96)),
      classifier_of("convnext_base", "ConvNeXt-Base, 89 M parameters", convnext_of({3, 3, 27, 3}, 128)),
      classifier_of("convnext_mini", "small ConvNeXt for 32x32 images, stem of stride 2",
                    small_convnext_of({2, 2, 2}, {48, 96, 192}, 2)),
  };
  family.recipes = {
      {"convnext_mini", "", 0, ResizeRule::kStretch, 0, Filter::kBilinear, false, false},
      {"convnext_tiny", "torchvision", 224, ResizeRule::kShortSide, 236, Filter::kBilinear, true, false},
      {"convnext_small", "torchvision", 224, ResizeRule::kShortSide, 230, Filter::kBilinear, true, false},
      {"convnext_base", "torchvision", 224, ResizeRule::kShortSide, 232, Filter::kBilinear, true, false},
      {"convnext_", "", 224, ResizeRule::kShortSide, 256, Filter::kBicubic, true, false},
      {"convnext_", "", 0, ResizeRule::kStretch, 0, Filter::kBicubic, false, false},
  };
  family.dialects = convnext_dialects();
  family.config_from_weights = [](const CanonicalWeights& weights, const nlohmann::json& known) {
    auto found = convnext_config_from_weights(weights);
    found.image_size = known.at("image_size");
    return json_from_config(found);
  };
  use_network<ConvNext, ConvNextConfig>(family);
  return family;
}

}  // namespace aha
