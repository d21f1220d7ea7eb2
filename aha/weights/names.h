// One vocabulary for public checkpoints: the same network has other tensor names in torchvision, timm,
// Hugging Face and Meta's own files.
//
// Canonical are timm's names:
//   ViT-like   patch_embed.proj, cls_token, pos_embed, dist_token, reg_token,
//              blocks.I.{norm1, attn.qkv, attn.proj, ls1.gamma, norm2, mlp.fc1, mlp.fc2, ls2.gamma},
//              SwiGLU mlp.w1 (gate), mlp.w2, mlp.w3 (out); norm, head, head_dist, rope.periods
//   ConvNeXt   stem.0, stem.1, stages.S.downsample.0/1,
//              stages.S.blocks.J.{conv_dw, norm, mlp.fc1, mlp.fc2, gamma}, head.norm, head.fc
//
// What differs beyond names is made equal too, without changing the function: separate query, key and value
// are stacked to attn.qkv; DINOv3's bias mask is multiplied into the bias; attn.qkv.bias is always there,
// zeros where the file has none; a position table without a class row gets a row of zeros; [w, 1, 1] and [4w,
// w, 1, 1] lose their ones.
//
// The rules are data (names_rules.h) and belong to the families of networks. A tensor that no rule knows is
// refused by name; those that are knowingly left out (pooler, mask token, projection heads of self-supervised
// training) are rules as well.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aha/weights/names_rules.h"
#include "aha/weights/tensor_table.h"

namespace aha {

struct CanonicalWeights {
  TensorTable table;
  // Of the dialect: "vit", "deit_distilled", "dinov2", "dinov3", "convnext", ...
  std::string family;
  // "torchvision", "timm", "huggingface", "dino", "dinov2", "dinov3", "meta", "aha". LayerNorm's epsilon and
  // the rule by which positions are resized depend on it.
  std::string source;
};

// Recognizes the dialect by its names. Wrapping prefixes (module., backbone., _orig_mod., model., vit., ...)
// are stripped first. The result's metadata hold "aha.family" and "aha.source"; a table that has them (a
// canonical file written by us) is taken as it is.
CanonicalWeights canonical_from_any(const TensorTable& table, std::span<const Dialect> known = dialects());

// One input error with the first missing names, the first unexpected ones and the shapes that differ,
// expected and found.
void check_keys(const TensorTable& table, const std::map<std::string, std::vector<int64_t>>& expected,
                std::string_view network);

}  // namespace aha
