// ResNet as a part of an ONNX graph.
#include "aha/networks/resnet.h"

namespace aha {
namespace {

OnnxValue conv_norm_in_onnx(OnnxBuilder& g, const OnnxValue& x, const torch::nn::Conv2dImpl& conv,
                            const BatchNormImpl& norm, const std::string& conv_name,
                            const std::string& norm_name) {
  const OnnxValue y = g.conv(x, {conv_name, conv.weight, conv.bias},
                             {.stride = (*conv.options.stride())[0], .padding = conv.weight.size(2) / 2});
  return g.batch_norm(y, {norm_name, norm.weight, norm.bias}, norm.running_mean, norm.running_var, norm.eps);
}

OnnxValue resnet_block_in_onnx(OnnxBuilder& g, ResNetBlockImpl& b, const OnnxValue& x,
                               const std::string& name) {
  const auto conv_norm = [&](const OnnxValue& in, const torch::nn::Conv2d& conv, const BatchNorm& norm,
                             int number) {
    return conv_norm_in_onnx(g, in, *conv, *norm, fmt::format("{}.conv{}", name, number),
                             fmt::format("{}.bn{}", name, number));
  };
  OnnxValue y = conv_norm(g.relu(conv_norm(x, b.conv1, b.bn1, 1)), b.conv2, b.bn2, 2);
  if (b.config.bottleneck) y = conv_norm(g.relu(y), b.conv3, b.bn3, 3);
  if (b.downsample.is_empty()) return g.relu(g.add(y, x));
  const OnnxValue shortcut =
      conv_norm_in_onnx(g, x, b.downsample->at<torch::nn::Conv2dImpl>(0), b.downsample->at<BatchNormImpl>(1),
                        name + ".downsample.0", name + ".downsample.1");
  return g.relu(g.add(y, shortcut));
}

}  // namespace

OnnxForward ResNetImpl::write_onnx(OnnxBuilder& g, const OnnxValue& input) {
  const torch::NoGradGuard no_grad;
  OnnxForward forward;
  OnnxValue x = g.relu(conv_norm_in_onnx(g, input, *conv1, *bn1, "conv1", "bn1"));
  if (config.stem_kernel == 7) x = g.max_pool(x, 3, {.stride = 2, .padding = 1});
  forward.taps["stem"] = x;
  for (size_t s = 0; s < layers.size(); ++s) {
    for (size_t j = 0; j < layers[s]->size(); ++j)
      x = forward.taps[fmt::format("stage.{}.block.{}", s, j)] = resnet_block_in_onnx(
          g, *layers[s]->ptr<ResNetBlockImpl>(j), x, fmt::format("layer{}.{}", s + 1, j));
    forward.taps[fmt::format("stage.{}", s)] = x;
  }
  forward.taps["features"] = x;
  forward.logits = g.linear(g.mean(x, {2, 3}), {"fc", fc->weight, fc->bias});
  return forward;
}

// The class activation map (attribution/cam.h).
OnnxValue ResNetImpl::write_onnx_shares(OnnxBuilder& g, const OnnxForward& forward,
                                        const OnnxValue& classes) {
  const OnnxValue& features = forward.taps.at("features");  // (B, C, h, w)
  const int64_t C = features.size(1), n = features.size(2) * features.size(3);
  const OnnxValue rows = g.reshape(g.gather(g.weight("fc.rows", fc->weight), classes), {1, C});
  return g.scale(g.reshape(g.matmul(rows, g.reshape(features, {C, n})), {1, n}), 1 / static_cast<double>(n));
}

}  // namespace aha
