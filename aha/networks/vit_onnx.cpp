// The vision transformer as a part of an ONNX graph, for images of one size.
#include <cmath>

#include "aha/networks/vit.h"

namespace aha {
namespace {

OnnxLayer onnx_layer(const std::string& name, const Linear& linear) {
  return {name, linear->weight, linear->bias};
}
OnnxLayer onnx_layer(const std::string& name, const torch::nn::LayerNorm& norm) {
  return {name, norm->weight, norm->bias};
}

// (B, T, D) -> (B, heads, T, d)
OnnxValue split_heads(OnnxBuilder& g, const OnnxValue& x, int64_t heads) {
  return g.transpose(g.reshape(x, {x.size(1), heads, x.size(2) / heads}), {0, 2, 1, 3});
}
OnnxValue joined_heads(OnnxBuilder& g, const OnnxValue& x) {
  return g.reshape(g.transpose(x, {0, 2, 1, 3}), {x.size(2), x.size(1) * x.size(3)});
}

// Cosine and sine of every token, (T, d): those before the patches are not turned.
struct OnnxRope {
  OnnxValue cos, sin;
};

OnnxValue turned(OnnxBuilder& g, const OnnxValue& x, const OnnxRope& rope) {  // (B, heads, T, d)
  const int64_t half = x.size(3) / 2;
  const OnnxValue second = g.scale(g.slice(x, 3, half, 2 * half), -1);
  const OnnxValue other = g.concat({second, g.slice(x, 3, 0, half)}, 3);
  return g.add(g.multiply(x, rope.cos), g.multiply(other, rope.sin));
}

OnnxValue attention_in_onnx(OnnxBuilder& g, AttentionImpl& attention, const OnnxValue& x,
                            const OnnxRope* rope, const std::string& weights, const std::string& tap,
                            OnnxForward& forward) {
  const int64_t D = attention.options.width, heads = attention.options.heads;
  const OnnxValue all = g.linear(x, onnx_layer(weights + ".qkv", attention.qkv));
  OnnxValue q = split_heads(g, g.slice(all, 2, 0, D), heads),
            k = split_heads(g, g.slice(all, 2, D, 2 * D), heads);
  const OnnxValue v = split_heads(g, g.slice(all, 2, 2 * D, 3 * D), heads);
  if (rope) {
    q = turned(g, q, *rope);
    k = turned(g, k, *rope);
  }
  const OnnxValue scores =
      g.matmul(g.scale(q, 1 / std::sqrt(static_cast<double>(D / heads))), g.transpose(k, {0, 1, 3, 2}));
  const OnnxValue probabilities = g.softmax(scores);
  const OnnxLayer proj = onnx_layer(weights + ".proj", attention.proj);
  const OnnxValue out = g.linear(joined_heads(g, g.matmul(probabilities, v)), proj);
  forward.taps[tap + ".values"] = v;
  forward.taps[tap + ".value_out"] = g.linear(joined_heads(g, v), {proj.name, proj.weight});
  forward.taps[tap + ".attention"] = probabilities;
  forward.taps[tap + ".attention_out"] = out;
  return out;
}

OnnxValue mlp_in_onnx(OnnxBuilder& g, MlpImpl& mlp, const OnnxValue& x, const std::string& name) {
  if (!mlp.options.swiglu)
    return g.linear(g.gelu(g.linear(x, onnx_layer(name + ".fc1", mlp.fc1))),
                    onnx_layer(name + ".fc2", mlp.fc2));
  const OnnxValue gate = g.silu(g.linear(x, onnx_layer(name + ".w1", mlp.w1)));
  return g.linear(g.multiply(gate, g.linear(x, onnx_layer(name + ".w2", mlp.w2))),
                  onnx_layer(name + ".w3", mlp.w3));
}

OnnxValue layer_scaled(OnnxBuilder& g, LayerScale& scale, const OnnxValue& x, const std::string& name) {
  return scale.is_empty() ? x : g.multiply(x, g.weight(name + ".gamma", scale->gamma));
}

OnnxValue block_in_onnx(OnnxBuilder& g, TransformerBlockImpl& block, const OnnxValue& x, const OnnxRope* rope,
                        int number, OnnxForward& forward) {
  const std::string weights = fmt::format("blocks.{}", number), tap = fmt::format("block.{}", number);
  const OnnxValue normed = g.layer_norm(x, onnx_layer(weights + ".norm1", block.norm1), block.options.eps);
  forward.taps[tap + ".norm1"] = normed;
  const OnnxValue attended = attention_in_onnx(g, *block.attn, normed, rope, weights + ".attn", tap, forward);
  const OnnxValue middle = g.add(x, layer_scaled(g, block.ls1, attended, weights + ".ls1"));
  const OnnxValue again =
      g.layer_norm(middle, onnx_layer(weights + ".norm2", block.norm2), block.options.eps);
  const OnnxValue active = mlp_in_onnx(g, *block.mlp, again, weights + ".mlp");
  return forward.taps[tap] = g.add(middle, layer_scaled(g, block.ls2, active, weights + ".ls2"));
}

}  // namespace

OnnxForward VitImpl::write_onnx(OnnxBuilder& g, const OnnxValue& x) {
  const torch::NoGradGuard no_grad;
  OnnxForward forward;
  const int64_t h = x.size(2) / config.patch, w = x.size(3) / config.patch, D = config.width;
  const OnnxValue grid = g.conv(x, {"patch_embed.proj", patch_embed->proj->weight, patch_embed->proj->bias},
                                {.stride = config.patch});
  const OnnxValue patches = g.transpose(g.reshape(grid, {D, h * w}), {0, 2, 1});  // (B, N, D)
  forward.taps["patch_embed"] = patches;

  // What does not depend on the image: tokens before the patches, and places. One table for both.
  const auto table =
      embed(torch::zeros({1, 3, x.size(2), x.size(3)}, cls_token.options())) -
      torch::constant_pad_nd(patch_embed->proj->bias.expand({1, h * w, D}), {0, 0, prefix_tokens(), 0});
  OnnxValue tokens = g.add(g.pad_front(patches, 1, prefix_tokens()), g.weight("tokens", table));
  forward.taps["embed"] = tokens;

  std::optional<OnnxRope> turn;
  if (config.rope) {
    const RopeTable angles = rope(h, w);
    const auto all = [&](const Tensor& patches_only, double before) {
      return torch::constant_pad_nd(patches_only, {0, 0, prefix_tokens(), 0}, before);
    };
    turn = OnnxRope{g.weight("rope.cos", all(angles.cos, 1)), g.weight("rope.sin", all(angles.sin, 0))};
  }
  const OnnxLayer last_norm = onnx_layer("norm", norm);
  for (int i = 0; i < config.depth; ++i) {
    tokens =
        block_in_onnx(g, *blocks[i]->as<TransformerBlock>(), tokens, turn ? &*turn : nullptr, i, forward);
    forward.taps[fmt::format("block.{}.normalized", i)] = g.layer_norm(tokens, last_norm, config.eps);
  }
  const OnnxValue normed = forward.taps["norm"] =
      forward.taps[fmt::format("block.{}.normalized", config.depth - 1)];
  const auto token = [&](int64_t t) { return g.reshape(g.slice(normed, 1, t, t + 1), {D}); };
  forward.logits = token(0);
  if (config.classes == 0) return forward;
  forward.logits = g.linear(forward.logits, onnx_layer("head", head));
  if (config.distilled)
    forward.logits =
        g.scale(g.add(forward.logits, g.linear(token(1), onnx_layer("head_dist", head_dist))), 0.5);
  return forward;
}

// head_direction and attention_gradient for all images at once: attribution/logit_attribution.h has the
// formula. The logit is taken above the mean of all logits.
OnnxValue VitImpl::write_onnx_shares(OnnxBuilder& g, const OnnxForward& forward, const OnnxValue& classes) {
  const torch::NoGradGuard no_grad;
  const int64_t D = config.width, Q = class_tokens();
  const auto rows_of = [&](const char* name, const Tensor& weight) {
    const OnnxValue rows = g.weight(std::string(name) + ".directions", weight - weight.mean(0, true));
    return g.reshape(g.gather(rows, classes), {1, D});  // (B, 1, D)
  };
  OnnxValue direction = rows_of("head", head->weight);
  if (config.distilled)
    direction = g.scale(g.concat({direction, rows_of("head_dist", head_dist->weight)}, 1), 0.5);

  // Back through the final norm, its deviation held fixed.
  direction = g.multiply(direction, g.weight("norm.weight", norm->weight));
  const OnnxValue read = g.slice(forward.taps.at(fmt::format("block.{}", config.depth - 1)), 1, 0, Q);
  const OnnxValue centered = g.subtract(read, g.mean(read, {2}, true));
  const OnnxValue variance = g.mean(g.multiply(centered, centered), {2}, true);
  const OnnxValue deviation = g.square_root(g.add(variance, g.number(config.eps)));
  direction = g.divide(g.subtract(direction, g.mean(direction, {2}, true)), deviation);  // (B, Q, D)

  std::vector<OnnxValue> shares;
  for (int i = 0; i < config.depth; ++i) {
    auto& block = *blocks[i]->as<TransformerBlock>();
    const std::string name = fmt::format("blocks.{}", i), tap = fmt::format("block.{}", i);
    const OnnxValue written = layer_scaled(g, block.ls1, direction, name + ".ls1");
    const OnnxValue context = g.linear(written, {name + ".attn.proj.back", block.attn->proj->weight.t()});
    const OnnxValue gradient = g.matmul(split_heads(g, context, config.heads),
                                        g.transpose(forward.taps.at(tap + ".values"), {0, 1, 3, 2}));
    const OnnxValue rows = g.slice(forward.taps.at(tap + ".attention"), 2, 0, Q);  // (B, heads, Q, T)
    const OnnxValue share = g.sum(g.multiply(rows, gradient), {1, 2});             // (B, T)
    shares.push_back(
        g.reshape(g.slice(share, 1, prefix_tokens(), share.size(1)), {1, share.size(1) - prefix_tokens()}));
  }
  return g.concat(shares, 1);
}

}  // namespace aha
