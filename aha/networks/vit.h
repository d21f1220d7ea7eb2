// One vision transformer for all of them: ViT Ti/S/B/L, DeiT and distilled DeiT, DINO v1, DINOv2 with and
// without registers, DINOv3, and small relatives.
//
//   tokens = [class, (distillation), registers, patches]
//   places = a table added to all but the registers, or RoPE in every attention
//   logits = head(norm(blocks(tokens))[class]), or its mean with head_dist(...[distillation])
//
// The parameters' names are timm's, so that named_parameters() is the list of expected keys. A position table
// is resampled for another input size by the rule of its source (bicubic, but with different corners and
// antialiasing: the results differ visibly).
#pragma once

#include <torch/nn/modules/container/modulelist.h>

#include <optional>

#include "aha/base/options.h"
#include "aha/networks/network_classifier.h"
#include "aha/networks/onnx_forward.h"
#include "aha/nn/patch_embed.h"
#include "aha/nn/transformer_block.h"
#include "aha/weights/names.h"

namespace aha {

struct VitConfig {
  int image_size = 224;  // of the position table; the network itself takes any size
  int patch = 16;
  int width = 192, depth = 12, heads = 3, mlp_hidden = 768;
  int registers = 0;
  int classes = 1000;  // 0 = an encoder without a head
  bool distilled = false, layer_scale = false, swiglu = false;
  bool rope = false;  // instead of a position table
  // Periods from the formula even where the file stores its own (DINOv3's are rounded to bf16).
  bool rope_formula = false;
  double eps = 1e-6;  // of every LayerNorm
  // torchvision: align_corners; timm, DINOv2 with registers: antialias; Hugging Face: plain; DINO, DINOv2:
  // scale_offset.
  std::string position_rule = "antialias";
};
Fields fields(VitConfig& config);

// Sizes from the shapes, eps and position rule from the source. heads = width / 64 unless given.
VitConfig vit_config_from_weights(const CanonicalWeights& weights, int heads = 0);

struct VitImpl : torch::nn::Cloneable<VitImpl>, Network, OnnxSource {
  explicit VitImpl(VitConfig config) : config(std::move(config)) { reset(); }
  void reset() override;

  torch::nn::Module& module() override { return *this; }
  const char* family() const override { return "vit"; }
  nlohmann::json config_json() const override;
  int classes() const override { return config.classes; }
  int image_size() const override { return config.image_size; }

  // x (B, 3, H, W) normalized -> logits (B, C); the class token after the final norm, (B, D), without a head
  Tensor forward(const Tensor& x, Taps* taps = nullptr) override;

  // The same in two steps, for callers that leave tokens out: (B, T, D) with positions, then any subset of
  // the tokens that keeps the prefix.
  Tensor embed(const Tensor& x, Taps* taps = nullptr);
  Tensor forward_tokens(const Tensor& tokens,
                        Taps* taps = nullptr);  // -> logits; not for RoPE, whose places are in the attention

  Tensor tokens(const Tensor& x, Taps* taps = nullptr);  // (B, T, D) after the final norm
  Tensor classify(const Tensor& tokens);  // head of tokens that went through norm(): (B, T, D) -> (B, C)

  Tensor patch_subset_logits(const Tensor& x, const Tensor& patches) override;
  Tensor read_out(const Tensor& tokens) override { return classify(norm(tokens)); }
  Tensor head_direction(const Tensor& read, const Tensor& weights) override;
  Tensor attention_gradient(int block, const Tensor& normed, const Tensor& stream) override;

  int prefix_tokens() const override { return 1 + (config.distilled ? 1 : 0) + config.registers; }
  void visit_attention_relevance(const Tensor& x, int64_t wanted, int first_block,
                                 const BlockVisitor& visitor) override;
  // "patch_embed", "embed" (all tokens, with positions), "block.N" and what is inside, "block.N.normalized"
  // (with the final norm applied), "norm".
  std::vector<std::string> tap_names() const override;
  std::vector<std::string> default_levels() const override;
  Tensor head_weights() const override { return config.classes > 0 ? head->weight : Tensor(); }
  std::string size_refusal(int side) const override;
  void load_weights(TensorTable table) override;
  std::unique_ptr<Engine> make_engine(const InputSpec& input, Precision precision) override;
  OnnxForward write_onnx(OnnxBuilder& g, const OnnxValue& x) override;
  OnnxValue write_onnx_shares(OnnxBuilder& g, const OnnxForward& forward, const OnnxValue& classes) override;
  // Truncated normal of std 0.02 for every matrix and table, zero biases; the same seed gives the same
  // numbers.
  void initialize(uint64_t seed) override;
  void initialize_from(uint64_t seed, const std::string& start) override;  // "normal", "mimetic"
  // The same, but attention begins as trained transformers have it: tokens look at those with similar content
  // and place (queries . keys near the identity), values lead away from the token's own (proj . values near
  // minus the identity), places are waves. Trockman and Kolter, "Mimetic initialization of self-attention
  // layers", 2023. For small data sets.
  void initialize_mimetic(uint64_t seed);
  // Precision of the blocks' GEMMs in training on the CPU (nn/trainable_block.h); nothing = on libtorch.
  void set_precision(std::optional<Precision> precision) override;

  VitConfig config;
  PatchEmbed patch_embed{nullptr};
  Tensor cls_token, dist_token, reg_token, pos_embed;
  Rope rope{nullptr};
  torch::nn::ModuleList blocks;
  torch::nn::LayerNorm norm{nullptr};
  Linear head{nullptr}, head_dist{nullptr};

 private:
  Tensor positions(int64_t h, int64_t w) const;  // (1, rows, D) for this grid
  // The last block gives its first `first_tokens` tokens; 0 = all.
  Tensor run_blocks(Tensor tokens, const RopeTable* rope, Taps* taps, int64_t first_tokens = 0);
  int64_t class_tokens() const { return config.distilled ? 2 : 1; }
  std::optional<RopeTable> rope_for(const Tensor& x);
};
TORCH_MODULE(Vit);

using VitClassifier = NetworkClassifier;

// Blocks that are tapped unless told: 4, 11, 17, 23 of 24 and 2, 5, 8, 11 of 12 (0-based, as the DINO depth
// heads do), else four evenly spaced ones.
std::vector<int> default_blocks(int depth);

}  // namespace aha
