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

Tensor TransformerBlockImpl::forward_plain(const Tensor& x, const RopeTable* rope, Taps* taps,
                                           const std::string& name) {
  const auto scaled = [](LayerScale& scale, const Tensor& branch) {
    return scale.is_empty() ? branch : scale(branch);
  };
  const auto normalized = norm1(x);
  if (taps) taps->offer(name + ".norm1", normalized);
  const auto middle = x + scaled(ls1, attn(normalized, rope, taps, name));
  return middle + scaled(ls2, mlp(norm2(middle)));
}

VitBlockOptions TransformerBlockImpl::fast_options() const {
  return {options.width, options.heads, options.mlp_hidden, options.eps, options.swiglu};
}

VitBlockWeights TransformerBlockImpl::weights() const {
  const auto both = [](const Tensor& a, const Tensor& b) { return torch::cat({a, b}); };
  const bool gated = options.swiglu;
  const Linear& last = gated ? mlp->w3 : mlp->fc2;
  return {.norm1_weight = norm1->weight,
          .norm1_bias = norm1->bias,
          .qkv_weight = attn->qkv->weight,
          .qkv_bias = attn->qkv->bias,
          .proj_weight = attn->proj->weight,
          .proj_bias = attn->proj->bias,
          .norm2_weight = norm2->weight,
          .norm2_bias = norm2->bias,
          .fc1_weight = gated ? both(mlp->w1->weight, mlp->w2->weight) : mlp->fc1->weight,
          .fc1_bias = gated ? both(mlp->w1->bias, mlp->w2->bias) : mlp->fc1->bias,
          .fc2_weight = last->weight,
          .fc2_bias = last->bias,
          .scale1 = ls1.is_empty() ? Tensor() : ls1->gamma,
          .scale2 = ls2.is_empty() ? Tensor() : ls2->gamma};
}

TrainableBlock* TransformerBlockImpl::trainable(const Tensor& x, const Taps* taps, const std::string& name) {
  const auto& weight = attn->qkv->weight;
  if (!precision_ || !weight.requires_grad() || !x.is_cpu() || !weight.is_cpu() ||
      x.scalar_type() != torch::kFloat32 || weight.scalar_type() != torch::kFloat32)
    return nullptr;
  if (taps)
    for (const char* inside : {".norm1", ".value_out", ".attention", ".attention_out"})
      if (taps->wants(name + inside)) return nullptr;
  if (!TrainableBlock::fits(fast_options())) return nullptr;
  if (!trainable_)
    trainable_ = std::make_shared<TrainableBlock>(fast_options(), best_kernel_set(*precision_));
  return trainable_.get();
}

void TransformerBlockImpl::set_precision(std::optional<Precision> wanted) {
  if (precision_ == wanted) return;
  precision_ = wanted;
  trainable_ = nullptr;
}

Tensor TransformerBlockImpl::forward(const Tensor& x, const RopeTable* rope, Taps* taps,
                                     const std::string& name, int64_t first_tokens) {
  Tensor out;
  if (TrainableBlock* fast = trainable(x, taps, name)) {
    out = fast->forward(x, weights(), first_tokens, rope);
  } else {
    out = forward_plain(x, rope, taps, name);
    if (first_tokens > 0) out = out.slice(1, 0, first_tokens);
  }
  if (taps) taps->offer(name, out);
  return out;
}

}  // namespace aha
