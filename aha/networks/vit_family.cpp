// Vision transformers as a network family.
#include "aha/networks/family.h"
#include "aha/networks/vit.h"
#include "aha/weights/names_rules.h"

namespace aha {
namespace {

VitConfig vit_of(int width, int depth, int patch) {
  VitConfig c;
  c.width = width;
  c.depth = depth;
  c.patch = patch;
  c.heads = width / 64;
  c.mlp_hidden = 4 * width;
  return c;
}

VitConfig distilled(VitConfig c) {
  c.distilled = true;
  return c;
}

VitConfig dino_of(int width, int depth, int patch) {
  auto c = vit_of(width, depth, patch);
  c.classes = 0;
  return c;
}

VitConfig dinov2_of(int width, int depth, int registers) {
  auto c = dino_of(width, depth, 14);
  c.layer_scale = true;
  c.registers = registers;
  c.image_size = 518;
  return c;
}

VitConfig dinov3_of(int width, int depth, bool swiglu = false) {
  auto c = dino_of(width, depth, 16);
  c.layer_scale = c.rope = true;
  c.registers = 4;
  c.swiglu = swiglu;
  c.eps = 1e-5;
  return c;
}

VitConfig small_vit_of(int patch, int width, int depth, int heads) {
  VitConfig c;
  c.image_size = 32;
  c.patch = patch;
  c.width = width;
  c.depth = depth;
  c.heads = heads;
  c.mlp_hidden = 2 * width;
  c.classes = 10;
  return c;
}

}  // namespace

NetworkFamily vit_family() {
  NetworkFamily family;
  family.name = "vit";
  family.described = "vision transformer";
  family.free_keys = {"classes", "image_size", "heads", "eps", "position_rule", "rope_formula"};
  family.sizes = {
      classifier_of("vit_ti_16", "ViT-Tiny, patch 16, 5.7 M parameters", vit_of(192, 12, 16)),
      classifier_of("vit_ti_32", "ViT-Tiny, patch 32, 6.1 M parameters", vit_of(192, 12, 32)),
      classifier_of("vit_s_16", "ViT-Small, patch 16, 22 M parameters", vit_of(384, 12, 16)),
      classifier_of("vit_s_32", "ViT-Small, patch 32, 23 M parameters", vit_of(384, 12, 32)),
      classifier_of("vit_b_16", "ViT-Base, patch 16, 87 M parameters", vit_of(768, 12, 16)),
      classifier_of("vit_b_32", "ViT-Base, patch 32, 88 M parameters", vit_of(768, 12, 32)),
      classifier_of("vit_l_16", "ViT-Large, patch 16, 304 M parameters", vit_of(1024, 24, 16)),
      classifier_of("vit_l_32", "ViT-Large, patch 32, 307 M parameters", vit_of(1024, 24, 32)),
      classifier_of("deit_ti_16", "DeiT-Tiny: the network of vit_ti_16, other preprocessing",
                    vit_of(192, 12, 16)),
      classifier_of("deit_s_16", "DeiT-Small: the network of vit_s_16, other preprocessing",
                    vit_of(384, 12, 16)),
      classifier_of("deit_b_16", "DeiT-Base: the network of vit_b_16, other preprocessing",
                    vit_of(768, 12, 16)),
      classifier_of("deit_ti_16_distilled", "distilled DeiT-Tiny", distilled(vit_of(192, 12, 16))),
      classifier_of("deit_s_16_distilled", "distilled DeiT-Small", distilled(vit_of(384, 12, 16))),
      classifier_of("deit_b_16_distilled", "distilled DeiT-Base", distilled(vit_of(768, 12, 16))),
      classifier_of("vit_mini_4", "small ViT for 32x32 images, patch 4", small_vit_of(4, 128, 6, 4)),
      classifier_of("vit_mini_8", "small ViT for 32x32 images, patch 8", small_vit_of(8, 128, 6, 4)),
      encoder_of("dino_vits16", "DINO v1, ViT-Small, patch 16", dino_of(384, 12, 16)),
      encoder_of("dino_vitb16", "DINO v1, ViT-Base, patch 16", dino_of(768, 12, 16)),
      encoder_of("dinov2_vits14", "DINOv2, ViT-Small, patch 14", dinov2_of(384, 12, 0)),
      encoder_of("dinov2_vitb14", "DINOv2, ViT-Base, patch 14", dinov2_of(768, 12, 0)),
      encoder_of("dinov2_vitl14", "DINOv2, ViT-Large, patch 14", dinov2_of(1024, 24, 0)),
      encoder_of("dinov2_vits14_reg", "DINOv2 with registers, ViT-Small, patch 14", dinov2_of(384, 12, 4)),
      encoder_of("dinov2_vitb14_reg", "DINOv2 with registers, ViT-Base, patch 14", dinov2_of(768, 12, 4)),
      encoder_of("dinov2_vitl14_reg", "DINOv2 with registers, ViT-Large, patch 14", dinov2_of(1024, 24, 4)),
      encoder_of("dinov3_vits16", "DINOv3, ViT-Small, patch 16", dinov3_of(384, 12)),
      encoder_of("dinov3_vits16plus", "DINOv3, ViT-Small with SwiGLU, patch 16", dinov3_of(384, 12, true)),
      encoder_of("dinov3_vitb16", "DINOv3, ViT-Base, patch 16", dinov3_of(768, 12)),
      encoder_of("dinov3_vitl16", "DINOv3, ViT-Large, patch 16: the paper's encoder", dinov3_of(1024, 24)),
  };
  family.recipes = {
      {"vit_mini", "", 0, ResizeRule::kStretch, 0, Filter::kBilinear, false, false},
      {"vit_l_16", "torchvision", 224, ResizeRule::kShortSide, 242, Filter::kBilinear, true, false},
      {"vit_", "torchvision", 224, ResizeRule::kShortSide, 256, Filter::kBilinear, true, false},
      {"vit_", "torchvision", 0, ResizeRule::kShortSide, 0, Filter::kBicubic, true,
       false},  // SWAG, end to end
      {"vit_", "huggingface", 0, ResizeRule::kStretch, 0, Filter::kBilinear, false, true},
      {"vit_", "", 224, ResizeRule::kShortSide, 248, Filter::kBicubic, true, true},
      {"vit_", "", 0, ResizeRule::kShortSide, 0, Filter::kBicubic, true, true},
      {"deit_", "huggingface", 224, ResizeRule::kShortSide, 256, Filter::kBicubic, true, false},
      {"deit_", "", 224, ResizeRule::kShortSide, 248, Filter::kBicubic, true, false},
      {"deit_", "", 0, ResizeRule::kShortSide, 0, Filter::kBicubic, true, false},
      {"dinov3_", "", 0, ResizeRule::kStretch, 0, Filter::kBilinear, false, false},
      {"dino", "", 224, ResizeRule::kShortSide, 256, Filter::kBicubic, true, false},
      {"", "", 0, ResizeRule::kShortSide, 0, Filter::kBicubic, true, false},
  };
  family.dialects = vit_dialects();
  family.config_from_weights = [](const CanonicalWeights& weights, const nlohmann::json& known) {
    // Heads cannot be seen in the shapes: the name says them, as long as they divide the width that was
    // found.
    const bool same_width = axis_of(weights.table, "patch_embed.proj.weight", 4, 0) == known.at("width");
    auto found = vit_config_from_weights(weights, same_width ? known.at("heads").get<int>() : 1);
    if (found.rope) found.image_size = known.at("image_size");
    return json_from_config(found);
  };
  use_network<Vit, VitConfig>(family);
  return family;
}

}  // namespace aha
