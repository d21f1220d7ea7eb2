// The decoder of the explainer: feature maps of several depths and a class in, one dense map out (paper,
// section 3.3; DPT, Ranftl et al. 2021).
//
//   e   = class_embed[t]                        one table for all levels
//
//   z_k = gelu(proj_k([x_k ; e]))               a token at a time;
//                                               with a class_dot: [x_k ; e ; x_k . class_dot_k(e) / sqrt(D)]
//
//   f_k = rn_k(reassemble_k(z_k))               x4, x2, as it is, /2: a pyramid, finest first
//
//   p   = up(out(rcu2(f_last)))                 deepest first, then for each finer level
//
//   p   = up(out_k(rcu2_k(p + rcu1_k(f_k))))    `up` goes to the size of the next finer map
//
//   map = head(top(p))                          refinement head, then bilinear to H x W
//
//   map = map + prior_weight prior              where there is one (explainer/prior.h)
//
// The prior's parts, where they are asked for, join each level: z_k = gelu(proj_k(...) + parts_k(parts)).
//
//   rcu(x)  = x + conv2(relu(conv1(relu(x))))
//
//   head(x) = out(gelu(bn2(conv(gelu(bn1(pw(dw(x))))))))
//
// Two rearrangements that change nothing but the cost: the projection is x W_x^T + (e W_e^T + b), the bracket
// once per image; `out` runs before `up`, because a 1x1 convolution and a bilinear interpolation commute.
//
// Batch norm: batch statistics in training, running ones in eval and in refinement, so that a map never
// depends on its batch mates.
//
// At set_precision(kBf16) the projections of tokens run on the fast kernels (nn/trainable_linear.h), where
// everything is on the CPU and the widths are multiples of 32. They are 1 % of the work; the convolutions
// stay on libtorch.
//
// 16,294,145 parameters for DINOv3-L and 1000 classes; 19 G multiply-adds per image at 224.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "aha/base/options.h"
#include "aha/kernels/kernel_set.h"
#include "aha/tensor/tensor.h"

namespace aha {

struct DecoderOptions {
  std::vector<int> widths = {1024, 1024, 1024, 1024};  // channels of each level, finest first
  // How a level's map is resized: s > 1 a transposed convolution of stride s, 1 nothing, -s a 3x3 convolution
  // of stride s.
  std::vector<int> scales = {4, 2, 1, -2};
  int classes = 1000;
  int embedding = 1024;  // width of the class embedding
  int channels = 256, top = 128, head = 64;
  int last_up = 2;          // the finest map is upsampled by this before the top convolution
  bool level_norm = false;  // a LayerNorm of its own on each level: for raw activations
  // One more channel per level: the dot product of the token with what the class asks for there. The paper
  // adds token and class only; with the target's own features and head weights the dot product is what the
  // target's head would say of the token.
  bool class_dot = false;
  std::string output = "none";    // none = unbounded, sigmoid
  std::string padding = "zeros";  // of 3x3 convolutions: zeros, replicate
  std::string prior = "none";     // a map of the target's own to begin from (explainer/prior.h)
  double prior_weight = 25;       // near the range of scores that training ends with, 20 to 60
  int prior_parts = 0;            // channels of the prior's parts; 0 = the decoder does not see them
};
Fields fields(DecoderOptions& options);

struct ResidualConvUnitImpl : torch::nn::Cloneable<ResidualConvUnitImpl> {
  ResidualConvUnitImpl(int64_t channels, bool replicate) : channels(channels), replicate(replicate) {
    reset();
  }
  void reset() override;
  Tensor forward(const Tensor& x);  // (B, c, h, w)

  int64_t channels;
  bool replicate;
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
};
TORCH_MODULE(ResidualConvUnit);

struct FusionImpl : torch::nn::Cloneable<FusionImpl> {
  // The deepest fusion has nothing to merge and therefore no rcu1.
  FusionImpl(int64_t channels, bool deepest, bool replicate)
      : channels(channels), deepest(deepest), replicate(replicate) {
    reset();
  }
  void reset() override;
  Tensor forward(const Tensor& skip, const Tensor& deeper);

  int64_t channels;
  bool deepest, replicate;
  ResidualConvUnit rcu1{nullptr}, rcu2{nullptr};
  torch::nn::Conv2d out{nullptr};
};
TORCH_MODULE(Fusion);

struct RefinementHeadImpl : torch::nn::Cloneable<RefinementHeadImpl> {
  RefinementHeadImpl(int64_t in, int64_t hidden, bool replicate)
      : in(in), hidden(hidden), replicate(replicate) {
    reset();
  }
  void reset() override;
  Tensor forward(const Tensor& x);  // (B, in, h, w) -> (B, 1, h, w)

  int64_t in, hidden;
  bool replicate;
  torch::nn::Conv2d dw{nullptr}, pw{nullptr}, conv{nullptr}, out{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};
};
TORCH_MODULE(RefinementHead);

struct DecoderImpl : torch::nn::Cloneable<DecoderImpl> {
  explicit DecoderImpl(DecoderOptions options) : options(std::move(options)) { reset(); }
  void reset() override;

  // levels: (B, widths[k], h_k, w_k), finest first; classes (B) int64 -> (B, H, W)
  // prior (B, H, W) and its parts (B, prior_parts, h, w), where the options have them.
  Tensor forward(const std::vector<Tensor>& levels, const Tensor& classes, int64_t H, int64_t W,
                 const Tensor& prior = {}, const Tensor& parts = {});

  // Zeros the last layer: the map is the prior alone.
  void start_from_prior();

  // Begins the class embedding from rows (C, embedding), such as the target's own last layer, scaled to unit
  // variance, and the class_dot of levels as wide as them from the rows themselves.
  void start_embedding_from(const Tensor& rows);

  // Weights, statistics and kernels of another decoder with the same options.
  void become(const DecoderImpl& other);

  // Of the projections. kF32, as it begins: libtorch's matmul.
  void set_precision(Precision precision);
  void set_kernels(const KernelSet* kernels) { kernels_ = kernels; }  // the same by hand; null = libtorch

  DecoderOptions options;
  torch::nn::Embedding class_embed{nullptr};
  torch::nn::ModuleList norms, class_dot, proj, prior_parts, reassemble, rn, fuse;
  torch::nn::Conv2d top{nullptr};
  RefinementHead head{nullptr};

 private:
  Tensor projected(size_t level, const Tensor& x,
                   const Tensor& e);  // proj_k before its gelu: (B, N, D), (B, E) -> (B, N, c)
  Tensor matmul(const Tensor& x, const Tensor& weight,
                const Tensor& bias = {}) const;  // (..., D), (c, D) -> (..., c)

  const KernelSet* kernels_ = nullptr;
};
TORCH_MODULE(Decoder);

}  // namespace aha
