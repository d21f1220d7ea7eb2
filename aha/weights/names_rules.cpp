#include "aha/weights/names_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

namespace aha {
namespace {

// "vit.", "deit." and so on are Hugging Face's names of the network inside a classifier; its bare encoders
// lack them.
constexpr std::string_view kWrappingPrefixes[] = {
    "module.",     "_orig_mod.", "backbone.",
    "model.",      "vit.",       "deit.",
    "convnext.",   "dinov2.",    "dinov2_with_registers.",
    "dinov3_vit.",
};

using Rules = std::vector<Rule>;

Rules joined(std::initializer_list<Rules> parts) {
  Rules out;
  for (const Rules& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

// Names that are the canonical ones already.
Rules same(std::initializer_list<std::string> names) {
  Rules out;
  for (const auto& name : names) out.push_back({name, name});
  return out;
}

// ---- ViT ----

const Rules kTorchvisionVit = {
    {"conv_proj.*", "patch_embed.proj.*"},
    {"class_token", "cls_token"},
    {"encoder.pos_embedding", "pos_embed"},
    {"encoder.layers.encoder_layer_{i}.ln_1.*", "blocks.{i}.norm1.*"},
    {"encoder.layers.encoder_layer_{i}.self_attention.in_proj_weight", "blocks.{i}.attn.qkv.weight"},
    {"encoder.layers.encoder_layer_{i}.self_attention.in_proj_bias", "blocks.{i}.attn.qkv.bias"},
    {"encoder.layers.encoder_layer_{i}.self_attention.out_proj.*", "blocks.{i}.attn.proj.*"},
    {"encoder.layers.encoder_layer_{i}.ln_2.*", "blocks.{i}.norm2.*"},
    {"encoder.layers.encoder_layer_{i}.mlp.0.*", "blocks.{i}.mlp.fc1.*"},
    {"encoder.layers.encoder_layer_{i}.mlp.3.*", "blocks.{i}.mlp.fc2.*"},
    {"encoder.layers.encoder_layer_{i}.mlp.linear_1.*", "blocks.{i}.mlp.fc1.*"},  // before torchvision 0.13
    {"encoder.layers.encoder_layer_{i}.mlp.linear_2.*", "blocks.{i}.mlp.fc2.*"},
    {"encoder.ln.*", "norm.*"},
    {"heads.head.*", "head.*"},
};

const Rules kTimmEmbeddings = same({"patch_embed.proj.*", "cls_token", "pos_embed", "norm.*"});
const Rules kTimmBlocks =
    same({"blocks.{i}.norm1.*", "blocks.{i}.attn.qkv.*", "blocks.{i}.attn.proj.*", "blocks.{i}.norm2.*"});
const Rules kTimmMlp = same({"blocks.{i}.mlp.fc1.*", "blocks.{i}.mlp.fc2.*"});
const Rules kLayerScale = same({"blocks.{i}.ls1.gamma", "blocks.{i}.ls2.gamma"});
const Rules kHead = same({"head.*"});

const Rules kTimmGamma = {
    {"blocks.{i}.gamma_1", "blocks.{i}.ls1.gamma"},
    {"blocks.{i}.gamma_2", "blocks.{i}.ls2.gamma"},
};

// Heads that self-supervised training throws away.
const Rules kProjectionHeads = {
    {"head.mlp.**", ""},
    {"head.last_layer.**", ""},
    {"dino_head.**", ""},
    {"ibot_head.**", ""},
};

const Rules kTimmVit = joined(
    {kTimmEmbeddings, kTimmBlocks, kTimmMlp, kLayerScale, kTimmGamma, kHead, {{"reg_token", "reg_token"}}});
const Rules kTimmDistilled =
    joined({kTimmVit, {{"dist_token", "dist_token"}, {"head_dist.*", "head_dist.*"}}});
const Rules kDino = joined({kTimmEmbeddings, kTimmBlocks, kTimmMlp, kProjectionHeads});

const Rules kDinov2 = joined({kTimmEmbeddings,
                              kTimmBlocks,
                              kTimmMlp,
                              kLayerScale,
                              kProjectionHeads,
                              {{"register_tokens", "reg_token"}, {"mask_token", ""}}});
const Rules kTimmDinov2 =
    joined({kTimmEmbeddings, kTimmBlocks, kTimmMlp, kLayerScale, kTimmGamma, {{"reg_token", "reg_token"}}});

const Rules kDinov3 =
    joined({kTimmEmbeddings,
            kTimmBlocks,
            kTimmMlp,
            kLayerScale,
            kProjectionHeads,
            {{"storage_tokens", "reg_token"},
             {"rope_embed.periods", "rope.periods"},
             {"blocks.{i}.attn.qkv.bias_mask", "blocks.{i}.attn.qkv.bias", Piece::kBiasMask},
             {"blocks.{i}.mlp.w1.*", "blocks.{i}.mlp.w1.*"},
             {"blocks.{i}.mlp.w2.*", "blocks.{i}.mlp.w2.*"},
             {"blocks.{i}.mlp.w3.*", "blocks.{i}.mlp.w3.*"},
             {"mask_token", ""},
             {"local_cls_norm.*", ""}}});

const Rules kTimmDinov3Common =
    joined({{{"blocks.{i}.attn.q_bias", "blocks.{i}.attn.qkv.bias", Piece::kQuery},
             {"blocks.{i}.attn.v_bias", "blocks.{i}.attn.qkv.bias", Piece::kValue}},
            kTimmEmbeddings,
            kTimmBlocks,
            kTimmGamma,
            kLayerScale,
            {{"reg_token", "reg_token"}}});
const Rules kTimmDinov3 = joined({kTimmDinov3Common, kTimmMlp});
const Rules kTimmDinov3Swiglu = joined({kTimmDinov3Common,
                                        {{"blocks.{i}.mlp.fc1_g.*", "blocks.{i}.mlp.w1.*"},
                                         {"blocks.{i}.mlp.fc1_x.*", "blocks.{i}.mlp.w2.*"},
                                         {"blocks.{i}.mlp.fc2.*", "blocks.{i}.mlp.w3.*"}}});

// ---- ViT, Hugging Face ----

// `parts` of a block: query, key, value, projection, the two layers of the MLP.
Rules hugging_vit(const std::string& block, const std::array<std::string, 6>& parts) {
  return {
      {"vit.embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"},
      {"vit.embeddings.cls_token", "cls_token"},
      {"vit.embeddings.position_embeddings", "pos_embed"},
      {"vit.embeddings.mask_token", ""},
      {block + "layernorm_before.*", "blocks.{i}.norm1.*"},
      {block + parts[0], "blocks.{i}.attn.qkv.*", Piece::kQuery},
      {block + parts[1], "blocks.{i}.attn.qkv.*", Piece::kKey},
      {block + parts[2], "blocks.{i}.attn.qkv.*", Piece::kValue},
      {block + parts[3], "blocks.{i}.attn.proj.*"},
      {block + "layernorm_after.*", "blocks.{i}.norm2.*"},
      {block + parts[4], "blocks.{i}.mlp.fc1.*"},
      {block + parts[5], "blocks.{i}.mlp.fc2.*"},
      {"vit.layernorm.*", "norm.*"},
      {"vit.pooler.dense.*", ""},
      {"classifier.*", "head.*"},
  };
}
const Rules kHuggingVit =
    hugging_vit("vit.encoder.layer.{i}.",
                {"attention.attention.query.*", "attention.attention.key.*", "attention.attention.value.*",
                 "attention.output.dense.*", "intermediate.dense.*", "output.dense.*"});
const Rules kHuggingVit5 =
    hugging_vit("vit.layers.{i}.", {"attention.q_proj.*", "attention.k_proj.*", "attention.v_proj.*",
                                    "attention.o_proj.*", "mlp.fc1.*", "mlp.fc2.*"});

// Distilled DeiT: what distillation adds, and the ViT's names under its own prefix.
Rules hugging_distilled(Rules vit) {
  constexpr std::string_view kVit = "vit.";
  for (Rule& rule : vit)
    if (rule.theirs.starts_with(kVit)) rule.theirs.replace(0, kVit.size(), "deit.");
  return joined({{{"deit.embeddings.distillation_token", "dist_token"},
                  {"cls_classifier.*", "head.*"},
                  {"distillation_classifier.*", "head_dist.*"}},
                 vit});
}

const Rules kHuggingDinov2 = {
    {"embeddings.patch_embeddings.projection.*", "patch_embed.proj.*"},
    {"embeddings.cls_token", "cls_token"},
    {"embeddings.register_tokens", "reg_token"},
    {"embeddings.position_embeddings", "pos_embed"},
    {"embeddings.mask_token", ""},
    {"encoder.layer.{i}.norm1.*", "blocks.{i}.norm1.*"},
    {"encoder.layer.{i}.attention.attention.query.*", "blocks.{i}.attn.qkv.*", Piece::kQuery},
    {"encoder.layer.{i}.attention.attention.key.*", "blocks.{i}.attn.qkv.*", Piece::kKey},
    {"encoder.layer.{i}.attention.attention.value.*", "blocks.{i}.attn.qkv.*", Piece::kValue},
    {"encoder.layer.{i}.attention.output.dense.*", "blocks.{i}.attn.proj.*"},
    {"encoder.layer.{i}.layer_scale1.lambda1", "blocks.{i}.ls1.gamma"},
    {"encoder.layer.{i}.norm2.*", "blocks.{i}.norm2.*"},
    {"encoder.layer.{i}.mlp.fc1.*", "blocks.{i}.mlp.fc1.*"},
    {"encoder.layer.{i}.mlp.fc2.*", "blocks.{i}.mlp.fc2.*"},
    {"encoder.layer.{i}.layer_scale2.lambda1", "blocks.{i}.ls2.gamma"},
    {"layernorm.*", "norm.*"},
};

// Keys have no bias there.
const Rules kHuggingDinov3Common = {
    {"embeddings.patch_embeddings.*", "patch_embed.proj.*"},
    {"embeddings.cls_token", "cls_token"},
    {"embeddings.register_tokens", "reg_token"},
    {"embeddings.mask_token", ""},
    {"layer.{i}.norm1.*", "blocks.{i}.norm1.*"},
    {"layer.{i}.attention.q_proj.*", "blocks.{i}.attn.qkv.*", Piece::kQuery},
    {"layer.{i}.attention.k_proj.weight", "blocks.{i}.attn.qkv.weight", Piece::kKey},
    {"layer.{i}.attention.v_proj.*", "blocks.{i}.attn.qkv.*", Piece::kValue},
    {"layer.{i}.attention.o_proj.*", "blocks.{i}.attn.proj.*"},
    {"layer.{i}.layer_scale1.lambda1", "blocks.{i}.ls1.gamma"},
    {"layer.{i}.norm2.*", "blocks.{i}.norm2.*"},
    {"layer.{i}.layer_scale2.lambda1", "blocks.{i}.ls2.gamma"},
    {"norm.*", "norm.*"},
};
const Rules kHuggingDinov3 = joined({kHuggingDinov3Common,
                                     {{"layer.{i}.mlp.up_proj.*", "blocks.{i}.mlp.fc1.*"},
                                      {"layer.{i}.mlp.down_proj.*", "blocks.{i}.mlp.fc2.*"}}});
const Rules kHuggingDinov3Swiglu = joined({kHuggingDinov3Common,
                                           {{"layer.{i}.mlp.gate_proj.*", "blocks.{i}.mlp.w1.*"},
                                            {"layer.{i}.mlp.up_proj.*", "blocks.{i}.mlp.w2.*"},
                                            {"layer.{i}.mlp.down_proj.*", "blocks.{i}.mlp.w3.*"}}});

// ---- ConvNeXt ----

const Rules kTorchvisionConvnext = {
    {"features.0.0.*", "stem.0.*"},
    {"features.0.1.*", "stem.1.*"},
    {"features.{2s}.0.*", "stages.{s}.downsample.0.*"},
    {"features.{2s}.1.*", "stages.{s}.downsample.1.*"},
    {"features.{2s+1}.{j}.layer_scale", "stages.{s}.blocks.{j}.gamma", Piece::kColumn},
    {"features.{2s+1}.{j}.block.0.*", "stages.{s}.blocks.{j}.conv_dw.*"},
    {"features.{2s+1}.{j}.block.2.*", "stages.{s}.blocks.{j}.norm.*"},
    {"features.{2s+1}.{j}.block.3.*", "stages.{s}.blocks.{j}.mlp.fc1.*"},
    {"features.{2s+1}.{j}.block.5.*", "stages.{s}.blocks.{j}.mlp.fc2.*"},
    {"classifier.0.*", "head.norm.*"},
    {"classifier.2.*", "head.fc.*"},
};

const Rules kMetaConvnext = {
    {"downsample_layers.0.0.*", "stem.0.*"},
    {"downsample_layers.0.1.*", "stem.1.*"},
    {"downsample_layers.{s}.0.*", "stages.{s}.downsample.0.*"},
    {"downsample_layers.{s}.1.*", "stages.{s}.downsample.1.*"},
    {"stages.{s}.{j}.gamma", "stages.{s}.blocks.{j}.gamma"},
    {"stages.{s}.{j}.dwconv.*", "stages.{s}.blocks.{j}.conv_dw.*"},
    {"stages.{s}.{j}.norm.*", "stages.{s}.blocks.{j}.norm.*"},
    {"stages.{s}.{j}.pwconv1.*", "stages.{s}.blocks.{j}.mlp.fc1.*"},
    {"stages.{s}.{j}.pwconv2.*", "stages.{s}.blocks.{j}.mlp.fc2.*"},
    {"norm.*", "head.norm.*"},
    {"head.*", "head.fc.*"},
};

const Rules kTimmConvnext = [] {
  Rules canonical;
  for (const Rule& rule : kMetaConvnext) canonical.push_back({rule.ours, rule.ours});
  return canonical;
}();

const Rules kHuggingConvnext = {
    {"convnext.embeddings.patch_embeddings.*", "stem.0.*"},
    {"convnext.embeddings.layernorm.*", "stem.1.*"},
    {"convnext.encoder.stages.{s}.downsampling_layer.0.*", "stages.{s}.downsample.0.*"},
    {"convnext.encoder.stages.{s}.downsampling_layer.1.*", "stages.{s}.downsample.1.*"},
    {"convnext.encoder.stages.{s}.layers.{j}.layer_scale_parameter", "stages.{s}.blocks.{j}.gamma"},
    {"convnext.encoder.stages.{s}.layers.{j}.dwconv.*", "stages.{s}.blocks.{j}.conv_dw.*"},
    {"convnext.encoder.stages.{s}.layers.{j}.layernorm.*", "stages.{s}.blocks.{j}.norm.*"},
    {"convnext.encoder.stages.{s}.layers.{j}.pwconv1.*", "stages.{s}.blocks.{j}.mlp.fc1.*"},
    {"convnext.encoder.stages.{s}.layers.{j}.pwconv2.*", "stages.{s}.blocks.{j}.mlp.fc2.*"},
    {"convnext.layernorm.*", "head.norm.*"},
    {"classifier.*", "head.fc.*"},
};

// ---- the pattern language ----

// The numbers bound to i, j, s, c and the text bound to a star.
struct Bindings {
  std::map<char, int> numbers;
  std::string_view star;
};

bool take(std::string_view& text, std::string_view head) {
  if (!text.starts_with(head)) return false;
  text.remove_prefix(head.size());
  return true;
}

std::optional<int> take_number(std::string_view& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool plain = digits >= 1 && digits <= 6 && (digits == 1 || text[0] != '0');
  if (!plain) return std::nullopt;
  int number = 0;
  std::from_chars(text.data(), text.data() + digits, number);
  text.remove_prefix(digits);
  return number;
}

std::optional<Bindings> match(std::string_view name, std::string_view pattern) {
  Bindings bound;
  while (!pattern.empty()) {
    if (pattern == "**") {
      bound.star = name;
      return bound;
    }
    if (pattern == "*") {
      bound.star = name;
      return name == "weight" || name == "bias" ? std::optional(bound) : std::nullopt;
    }
    if (pattern[0] != '{') {
      if (name.empty() || name[0] != pattern[0]) return std::nullopt;
      name.remove_prefix(1);
      pattern.remove_prefix(1);
      continue;
    }
    auto number = take_number(name);
    if (!number) return std::nullopt;
    const bool odd = take(pattern, "{2s+1}"), even = !odd && take(pattern, "{2s}");
    if ((odd && *number % 2 == 0) || (even && *number % 2 == 1)) return std::nullopt;
    const char letter = odd || even ? 's' : pattern[1];
    if (!odd && !even) pattern.remove_prefix(3);
    bound.numbers[letter] = odd || even ? *number / 2 : *number;
  }
  return name.empty() ? std::optional(bound) : std::nullopt;
}

std::string expanded(std::string_view pattern, const Bindings& bound) {
  std::string out;
  while (!pattern.empty()) {
    if (pattern == "*" || pattern == "**") return out += bound.star;
    if (take(pattern, "{2s+1}")) {
      out += std::to_string(2 * bound.numbers.at('s') + 1);
    } else if (take(pattern, "{2s}")) {
      out += std::to_string(2 * bound.numbers.at('s'));
    } else if (pattern[0] == '{') {
      out += std::to_string(bound.numbers.at(pattern[1]));
      pattern.remove_prefix(3);
    } else {
      out += pattern[0];
      pattern.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace

std::vector<Dialect> vit_dialects() {
  return {
      {"torchvision", "vit", {"conv_proj.weight", "class_token"}, kTorchvisionVit},
      {"huggingface",
       "deit_distilled",
       {"embeddings.distillation_token", "encoder.layer.0.layernorm_before.weight"},
       hugging_distilled(kHuggingVit)},
      {"huggingface-v5",
       "deit_distilled",
       {"embeddings.distillation_token", "layers.0.layernorm_before.weight"},
       hugging_distilled(kHuggingVit5)},
      {"huggingface", "vit", {"encoder.layer.0.layernorm_before.weight"}, kHuggingVit},
      {"huggingface-v5", "vit", {"layers.0.layernorm_before.weight"}, kHuggingVit5},
      {"huggingface", "dinov2", {"encoder.layer.0.layer_scale1.lambda1"}, kHuggingDinov2},
      {"huggingface-swiglu",
       "dinov3",
       {"layer.0.layer_scale1.lambda1", "layer.0.mlp.gate_proj.weight"},
       kHuggingDinov3Swiglu},
      {"huggingface", "dinov3", {"layer.0.layer_scale1.lambda1"}, kHuggingDinov3},
      {"dinov3", "dinov3", {"patch_embed.proj.weight", "storage_tokens"}, kDinov3},
      {"dinov3", "dinov3", {"patch_embed.proj.weight", "rope_embed.periods"}, kDinov3},
      {"timm-swiglu",
       "dinov3",
       {"patch_embed.proj.weight", "blocks.0.mlp.fc1_g.weight"},
       kTimmDinov3Swiglu,
       {"pos_embed"}},
      {"timm", "dinov3", {"patch_embed.proj.weight", "blocks.0.norm1.weight"}, kTimmDinov3, {"pos_embed"}},
      {"dinov2", "dinov2", {"patch_embed.proj.weight", "blocks.0.ls1.gamma", "mask_token"}, kDinov2},
      {"timm", "dinov2", {"patch_embed.proj.weight", "blocks.0.ls1.gamma"}, kTimmDinov2, {"head.weight"}},
      {"timm", "deit_distilled", {"patch_embed.proj.weight", "dist_token"}, kTimmDistilled},
      {"timm", "vit", {"patch_embed.proj.weight", "head.weight"}, kTimmVit},
      {"dino", "vit", {"patch_embed.proj.weight", "pos_embed"}, kDino, {"pos_embed_window"}},
  };
}

std::vector<Dialect> convnext_dialects() {
  return {
      {"torchvision", "convnext", {"features.0.0.weight", "features.1.0.layer_scale"}, kTorchvisionConvnext},
      {"timm", "convnext", {"stem.0.weight", "stages.0.blocks.0.conv_dw.weight"}, kTimmConvnext},
      {"meta", "convnext", {"downsample_layers.0.0.weight"}, kMetaConvnext},
      {"huggingface", "convnext", {"encoder.stages.0.layers.0.dwconv.weight"}, kHuggingConvnext},
  };
}

const std::vector<Dialect>& dialects() {
  static const auto list = [] {
    auto all = convnext_dialects();
    for (auto& dialect : vit_dialects()) all.push_back(std::move(dialect));
    return all;
  }();
  return list;
}

std::string plain_name(std::string_view name) {
  for (bool stripped = true; stripped;) {
    stripped = false;
    for (const std::string_view prefix : kWrappingPrefixes) stripped |= take(name, prefix);
  }
  return rewritten(name, "blocks.{c}.{i}.**", "blocks.{i}.**").value_or(std::string(name));
}

std::optional<std::string> rewritten(std::string_view name, std::string_view from, std::string_view to) {
  const auto bound = match(name, from);
  if (!bound) return std::nullopt;
  return expanded(to, *bound);
}

}  // namespace aha
