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
      {"vit_ti_16", "classifier", "ViT-Tiny, patch 16, 5.7 M parameters",
       json_from_config(vit_of(192, 12, 16))},
      {"vit_ti_32", "classifier", "ViT-Tiny, patch 32, 6.1 M parameters",
       json_from_config(vit_of(192, 12, 32))},
      {"vit_s_16", "classifier", "ViT-Small, patch 16, 22 M parameters",
       json_from_config(vit_of(384, 12, 16))},
      {"vit_s_32", "classifier", "ViT-Small, patch 32, 23 M parameters",
       json_from_config(vit_of(384, 12, 32))},
      {"vit_b_16", "classifier", "ViT-Base, patch 16, 87 M parameters",
       json_from_config(vit_of(768, 12, 16))},
      {"vit_b_32", "classifier", "ViT-Base, patch 32, 88 M parameters",
       json_from_config(vit_of(768, 12, 32))},
      {"vit_l_16", "classifier", "ViT-Large, patch 16, 304 M parameters",
       json_from_config(vit_of(1024, 24, 16))},
      {"vit_l_32", "classifier", "ViT-Large, patch 32, 307 M parameters",
       json_from_config(vit_of(1024, 24, 32))},
      {"deit_ti_16", "classifier", "DeiT-Tiny: the network of vit_ti_16, other preprocessing",
       json_from_config(vit_of(192, 12, 16))},
      {"deit_s_16", "classifier", "DeiT-Small: the network of vit_s_16, other preprocessing",
       json_from_config(vit_of(384, 12, 16))},
      {"deit_b_16", "classifier", "DeiT-Base: the network of vit_b_16, other preprocessing",
       json_from_config(vit_of(768, 12, 16))},
      {"deit_ti_16_distilled", "classifier", "distilled DeiT-Tiny",
       json_from_config(distilled(vit_of(192, 12, 16)))},
      {"deit_s_16_distilled", "classifier", "distilled DeiT-Small",
       json_from_config(distilled(vit_of(384, 12, 16)))},
      {"deit_b_16_distilled", "classifier", "distilled DeiT-Base",
       json_from_config(distilled(vit_of(768, 12, 16)))},
      {"vit_mini_4", "classifier", "small ViT for 32x32 images, patch 4",
       json_from_config(small_vit_of(4, 128, 6, 4))},
      {"vit_mini_8", "classifier", "small ViT for 32x32 images, patch 8",
       json_from_config(small_vit_of(8, 128, 6, 4))},
      {"dino_vits16", "encoder", "DINO v1, ViT-Small, patch 16", json_from_config(dino_of(384, 12, 16))},
      {"dino_vitb16", "encoder", "DINO v1, ViT-Base, patch 16", json_from_config(dino_of(768, 12, 16))},
      {"dinov2_vits14", "encoder", "DINOv2, ViT-Small, patch 14", json_from_config(dinov2_of(384, 12, 0))},
      {"dinov2_vitb14", "encoder", "DINOv2, ViT-Base, patch 14", json_from_config(dinov2_of(768, 12, 0))},
      {"dinov2_vitl14", "encoder", "DINOv2, ViT-Large, patch 14", json_from_config(dinov2_of(1024, 24, 0))},
      {"dinov2_vits14_reg", "encoder", "DINOv2 with registers, ViT-Small, patch 14",
       json_from_config(dinov2_of(384, 12, 4))},
      {"dinov2_vitb14_reg", "encoder", "DINOv2 with registers, ViT-Base, patch 14",
       json_from_config(dinov2_of(768, 12, 4))},
      {"dinov2_vitl14_reg", "encoder", "DINOv2 with registers, ViT-Large, patch 14",
       json_from_config(dinov2_of(1024, 24, 4))},
      {"dinov3_vits16", "encoder", "DINOv3, ViT-Small, patch 16", json_from_config(dinov3_of(384, 12))},
      {"dinov3_vits16plus", "encoder", "DINOv3, ViT-Small with SwiGLU, patch 16",
       json_from_config(dinov3_of(384, 12, true))},
      {"dinov3_vitb16", "encoder", "DINOv3, ViT-Base, patch 16", json_from_config(dinov3_of(768, 12))},
      {"dinov3_vitl16", "encoder", "DINOv3, ViT-Large, patch 16: the paper's encoder",
       json_from_config(dinov3_of(1024, 24))},
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
    const auto& patch = weights.table.at("patch_embed.proj.weight");
    const bool same_width = !patch.shape.empty() && patch.shape[0] == known.at("width");
    auto found = vit_config_from_weights(weights, same_width ? known.at("heads").get<int>() : 1);
    if (found.rope) found.image_size = known.at("image_size");
    return json_from_config(found);
  };
  use_network<Vit, VitConfig>(family);
  return family;
}

}  // namespace aha
