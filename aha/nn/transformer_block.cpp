#include "aha/nn/transformer_block.h"

#include "aha/nn/patch_embed.h"

namespace aha {

void MlpImpl::reset() {
  if (options.swiglu) {
    w1 = register_module("w1", Linear(LinearOptions{options.width, options.hidden}));
    w2 = register_module("w2", Linear(LinearOptions{options.width, options.hidden}));
    w3 = register_module("w3", Linear(LinearOptions{options.hidden, options.width}));
  } else {
    fc1 = register_module("fc1", Linear(LinearOptions{options.width, options.hidden}));
    fc2 = register_module("fc2", Linear(LinearOptions{options.hidden, options.width}));
  }
}

Tensor MlpImpl::forward(const Tensor& x) {
  return options.swiglu ? w3(torch::silu(w1(x)) * w2(x)) : fc2(torch::gelu(fc1(x)));
}

void PatchEmbedImpl::reset() {
  const auto P = options.patch;
  proj = register_module(
      "proj", torch::nn::Conv2d(torch::nn::Conv2dOptions(options.channels, options.width, P).stride(P)));
}

Tensor PatchEmbedImpl::forward(const Tensor& x) {
  return proj(x).flatten(2).transpose(1, 2);
}

void TransformerBlockImpl::reset() {
  const auto norm_options = torch::nn::LayerNormOptions({options.width}).eps(options.eps);
  norm1 = register_module("norm1", torch::nn::LayerNorm(norm_options));
  attn = register_module("attn", Attention(AttentionOptions{options.width, options.heads}));
  if (options.layer_scale) ls1 = register_module("ls1", LayerScale(options.width));
  norm2 = register_module("norm2", torch::nn::LayerNorm(norm_options));
  mlp = register_module("mlp", Mlp(MlpOptions{options.width, options.mlp_hidden, options.swiglu}));
  if (options.layer_scale) ls2 = register_module("ls2", LayerScale(options.width));
}

Tensor TransformerBlockImpl::forward(const Tensor& x, const RopeTable* rope, Taps* taps,
                                     const std::string& name) {
  const auto scaled = [](LayerScale& scale, const Tensor& branch) {
    return scale.is_empty() ? branch : scale(branch);
  };
  const auto normed = norm1(x);
  if (taps) taps->offer(name + ".norm1", normed);
  const auto middle = x + scaled(ls1, attn(normed, rope, taps, name));
  const auto out = middle + scaled(ls2, mlp(norm2(middle)));
  if (taps) taps->offer(name, out);
  return out;
}

}  // namespace aha
