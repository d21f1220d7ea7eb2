// ConvNeXt as a part of an ONNX graph.
#include "aha/networks/convnext.h"

namespace aha {
namespace {

OnnxLayer onnx_conv(const std::string& name, const torch::nn::Conv2dImpl& conv) {
  return {name, conv.weight, conv.bias};
}

OnnxValue conv_block_in_onnx(OnnxBuilder& g, ConvBlockImpl& block, const OnnxValue& x,
                             const std::string& name) {
  const OnnxValue wide =
      g.conv(x, onnx_conv(name + ".conv_dw", *block.conv_dw), {.padding = 3, .groups = block.width});
  OnnxValue y = g.layer_norm(g.transpose(wide, {0, 2, 3, 1}),
                             {name + ".norm", block.norm->weight, block.norm->bias}, block.eps);
  const auto linear = [&](const OnnxValue& in, const char* layer, const Linear& weights) {
    return g.linear(in, {name + layer, weights->weight, weights->bias});
  };
  y = linear(g.gelu(linear(y, ".mlp.fc1", block.mlp->fc1)), ".mlp.fc2", block.mlp->fc2);
  y = g.multiply(y, g.weight(name + ".gamma", block.gamma));
  return g.add(x, g.transpose(y, {0, 3, 1, 2}));
}

// The places of feature maps as rows: (B, C, h, w) -> (B, h w, C)
OnnxValue place_rows(OnnxBuilder& g, const OnnxValue& features) {
  return g.transpose(g.reshape(features, {features.size(1), features.size(2) * features.size(3)}), {0, 2, 1});
}

}  // namespace

OnnxForward ConvNextImpl::write_onnx(OnnxBuilder& g, const OnnxValue& input) {
  const torch::NoGradGuard no_grad;
  OnnxForward forward;
  const auto norm_of = [](torch::nn::Sequential& pair, size_t i, const std::string& name) {
    const auto& norm = pair->at<ChannelNormImpl>(i);
    return OnnxLayer{name, norm.weight, norm.bias};
  };
  OnnxValue x =
      g.conv(input, onnx_conv("stem.0", stem->at<torch::nn::Conv2dImpl>(0)), {.stride = config.stem_stride});
  x = forward.taps["stem"] = g.channel_norm(x, norm_of(stem, 1, "stem.1"), config.eps);
  for (size_t s = 0; s < config.depths.size(); ++s) {
    auto& stage = *stages[s]->as<ConvNextStage>();
    const std::string tap = fmt::format("stage.{}", s), name = fmt::format("stages.{}", s);
    if (!stage.downsample.is_empty()) {
      x = g.channel_norm(x, norm_of(stage.downsample, 0, name + ".downsample.0"), config.eps);
      x = g.conv(x, onnx_conv(name + ".downsample.1", stage.downsample->at<torch::nn::Conv2dImpl>(1)),
                 {.stride = 2});
    }
    for (int j = 0; j < config.depths[s]; ++j)
      x = forward.taps[fmt::format("{}.block.{}", tap, j)] =
          conv_block_in_onnx(g, *stage.blocks[j]->as<ConvBlock>(), x, fmt::format("{}.blocks.{}", name, j));
    forward.taps[tap] = x;
  }
  forward.taps["features"] = x;
  const OnnxValue pooled = g.mean(x, {2, 3});
  forward.logits =
      g.linear(g.layer_norm(pooled, {"head.norm", head->norm->weight, head->norm->bias}, config.head_eps),
               {"head.fc", head->fc->weight, head->fc->bias});
  return forward;
}

// The class activation map, the last norm's deviation held fixed (attribution/cam.h).
OnnxValue ConvNextImpl::write_onnx_shares(OnnxBuilder& g, const OnnxForward& forward,
                                          const OnnxValue& classes) {
  const torch::NoGradGuard no_grad;
  const Tensor rows = head->fc->weight * head->norm->weight;
  const OnnxValue wanted =
      g.gather(g.weight("head.directions", rows - rows.mean(1, true)), classes);  // (B, D)
  const OnnxValue features = place_rows(g, forward.taps.at("features"));          // (B, n, D)
  const OnnxValue pooled = g.mean(features, {1});
  const OnnxValue centered = g.subtract(pooled, g.mean(pooled, {1}, true));
  const OnnxValue variance = g.mean(g.multiply(centered, centered), {1}, true);
  const OnnxValue direction = g.divide(wanted, g.square_root(g.add(variance, g.number(config.head_eps))));
  const int64_t D = features.size(2), n = features.size(1);
  const OnnxValue values = g.reshape(g.matmul(features, g.reshape(direction, {D, 1})), {1, n});
  return g.scale(values, 1 / static_cast<double>(n));
}

}  // namespace aha
