#include "aha/networks/onnx_forward.h"

#include "aha/base/error.h"
#include "aha/base/square_side.h"
#include "aha/networks/network_classifier.h"

namespace aha {
namespace {

// (B, N, C) -> (B, C, h, h)
OnnxValue onnx_map_from_tokens(OnnxBuilder& g, const OnnxValue& tokens, const std::string& name) {
  const int64_t side = square_side(tokens.size(1));
  if (side == 0)
    throw input_error("tap {}: expected a square grid of patches, found {}", name, tokens.size(1));
  return g.reshape(g.transpose(tokens, {0, 2, 1}), {tokens.size(2), side, side});
}

OnnxValue onnx_map_from_tap(OnnxBuilder& g, const OnnxValue& tap, const std::string& name, int prefix) {
  if (name.ends_with(".attention")) {
    const int64_t heads = tap.size(1), T = tap.size(3);
    const OnnxValue row = g.reshape(g.slice(g.slice(tap, 2, 0, 1), 3, prefix, T), {heads, T - prefix});
    return onnx_map_from_tokens(g, g.scale(g.transpose(row, {0, 2, 1}), static_cast<double>(T)), name);
  }
  if (tap.rank() == 4) return tap;
  return onnx_map_from_tokens(g, name == "patch_embed" ? tap : g.slice(tap, 1, prefix, tap.size(1)), name);
}

}  // namespace

OnnxSource& onnx_source(Classifier& classifier) {
  auto* ours = dynamic_cast<NetworkClassifier*>(&classifier);
  auto* source = ours ? dynamic_cast<OnnxSource*>(ours->shared_network().get()) : nullptr;
  if (!source)
    throw input_error("{}: expected a network of the families vit, convnext or resnet, found {}",
                      classifier.info().name, classifier.info().architecture);
  return *source;
}

OnnxValue network_input(OnnxBuilder& g, const OnnxValue& pixels, const InputSpec& spec) {
  const auto channel = [&](const char* name, const std::array<double, 3>& values) {
    return g.weight(name, torch::tensor({values[0], values[1], values[2]}, at::kFloat).view({1, 3, 1, 1}));
  };
  const OnnxValue rgb =
      g.divide(g.subtract(pixels, channel("input.mean", spec.mean)), channel("input.std", spec.std));
  return spec.order == ChannelOrder::kBgr ? g.pick(rgb, 1, {2, 1, 0}) : rgb;
}

std::vector<OnnxValue> maps_from_taps(OnnxBuilder& g, const OnnxForward& forward,
                                      const std::vector<std::string>& names, int prefix_tokens) {
  std::vector<OnnxValue> maps;
  for (const auto& name : names)
    maps.push_back(onnx_map_from_tap(g, forward.taps.at(name), name, prefix_tokens));
  return maps;
}

}  // namespace aha
