// Hiera (Ryali et al. 2023) as SAM 2 has it (Ravi et al. 2024): a transformer in stages, whose attention
// looks within windows in all but a few blocks. An encoder: it has no head.
//
//   x          convolution 7x7 of stride 4, plus places
//   places     a coarse map resampled (bicubic) to the size of the tokens, plus a small one repeated as tiles
//   block      u = norm1(x),  x' = x + attention(u),  x'' = x' + mlp(norm2(x'))
//   attention  within windows of the stage's side, over all tokens in the global blocks. Windows that reach
//              beyond the border are filled with zeros, which take part in the attention
//   stage s    depths[s] blocks. The first of each later stage has twice the width and the heads, and halves
//              the sides: x = maxpool(proj(u)) and queries = maxpool(queries), 2x2. Its windows are those of
//              the stage before
//
// The network takes images of any size from size_refusal's on. SAM 2's own code asks for multiples of 32
// pixels: between them tiles are cut off at the border, and an odd side is halved downwards.
//
// Taps: "embed", "stage.{s}.block.{j}", "stage.{s}", all (B, C, H, W).
#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/normalization.h>

#include "aha/base/options.h"
#include "aha/networks/network.h"
#include "aha/nn/linear.h"
#include "aha/nn/mlp.h"
#include "aha/weights/names.h"

namespace aha {

struct HieraConfig {
  int image_size = 1024;                       // what it was trained at
  int width = 96, heads = 1;                   // of the first stage
  std::vector<int> depths = {1, 2, 7, 2};      // blocks of each stage
  std::vector<int> windows = {8, 4, 14, 7};    // side of each stage's windows, in tokens
  std::vector<int> global_blocks = {5, 7, 9};  // counted through all stages
  int position_side = 7;  // of the coarse map of places; the tiles have the side of the first windows
  int classes = 0;        // there is no head
  double eps = 1e-6;      // of every LayerNorm
};
Fields fields(HieraConfig& config);

// Sizes from the shapes; heads, later windows and global blocks, which shapes do not show, from `known`.
HieraConfig hiera_config_from_weights(const CanonicalWeights& weights, const HieraConfig& known);

struct HieraBlockOptions {
  int inputs, width, heads;
  int window;    // side in tokens; 0 = global
  bool halving;  // the first block of a later stage
  double eps;
};

struct HieraAttentionImpl : torch::nn::Cloneable<HieraAttentionImpl> {
  explicit HieraAttentionImpl(HieraBlockOptions options) : options(options) { reset(); }
  void reset() override;
  // (n, h, w, inputs) -> (n, h', w', width), each of the n by itself
  Tensor forward(const Tensor& x);

  HieraBlockOptions options;
  Linear qkv{nullptr}, proj{nullptr};
};
TORCH_MODULE(HieraAttention);

struct HieraBlockImpl : torch::nn::Cloneable<HieraBlockImpl> {
  explicit HieraBlockImpl(HieraBlockOptions options) : options(options) { reset(); }
  void reset() override;
  Tensor forward(const Tensor& x);  // (B, h, w, inputs) -> (B, h', w', width)

  HieraBlockOptions options;
  torch::nn::LayerNorm norm1{nullptr}, norm2{nullptr};
  HieraAttention attn{nullptr};
  Mlp mlp{nullptr};
  Linear proj{nullptr};  // of halving blocks
};
TORCH_MODULE(HieraBlock);

struct HieraImpl : torch::nn::Cloneable<HieraImpl>, Network {
  explicit HieraImpl(HieraConfig config) : config(std::move(config)) { reset(); }
  void reset() override;

  torch::nn::Module& module() override { return *this; }
  const char* family() const override { return "hiera"; }
  nlohmann::json config_json() const override;
  int classes() const override { return 0; }
  int image_size() const override { return config.image_size; }

  // x (B, 3, H, W) normalized -> mean of the last stage, (B, C)
  Tensor forward(const Tensor& x, Taps* taps = nullptr) override;
  std::vector<std::string> tap_names() const override;
  std::vector<std::string> default_levels() const override;  // the stages
  Tensor head_weights() const override { return {}; }
  std::string size_refusal(int side) const override;
  // Truncated normal of std 0.02 for every matrix and table, zero biases.
  void initialize(uint64_t seed) override;
  std::unique_ptr<Engine> make_engine(const InputSpec& input, Precision precision) override;

  HieraConfig config;
  torch::nn::Sequential patch_embed{nullptr};
  Tensor pos_embed, pos_embed_window;  // (1, C, side, side)
  torch::nn::ModuleList blocks{nullptr};

 private:
  Tensor positions(int64_t h, int64_t w) const;  // (1, h, w, C)
};
TORCH_MODULE(Hiera);

}  // namespace aha
