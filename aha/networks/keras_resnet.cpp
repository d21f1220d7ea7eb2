#include "aha/networks/keras_resnet.h"

#include <map>
#include <regex>

#include "aha/base/error.h"

namespace aha {
namespace {

// "res3b_branch2a" -> "layer2.1.conv1"; empty for a name of another kind.
std::string layer_from_keras(const std::string& name) {
  static const std::regex kBlock("(res|bn)([2-9])([a-z])_branch(1|2[abc])");
  if (name == "conv1") return "conv1";
  if (name == "bn_conv1") return "bn1";
  if (name.starts_with("fc")) return "fc";
  std::smatch m;
  if (!std::regex_match(name, m, kBlock)) return "";
  const bool norm = m[1] == "bn";
  const std::string block = fmt::format("layer{}.{}.", m.str(2)[0] - '1', m.str(3)[0] - 'a');
  if (m[4] == "1") return block + (norm ? "downsample.1" : "downsample.0");
  return fmt::format("{}{}{}", block, norm ? "bn" : "conv", m.str(4)[1] - 'a' + 1);
}

std::string part_from_keras(const std::string& part) {
  static const std::map<std::string, std::string> kParts = {{"kernel", "weight"},
                                                            {"gamma", "weight"},
                                                            {"bias", "bias"},
                                                            {"beta", "bias"},
                                                            {"moving_mean", "running_mean"},
                                                            {"moving_variance", "running_var"}};
  const auto found = kParts.find(part);
  return found == kParts.end() ? "" : found->second;
}

}  // namespace

TensorTable resnet_table_from_keras(const TensorTable& keras) {
  TensorTable table;
  table.source = keras.source;
  for (const auto& [name, view] : keras.tensors) {
    const auto slash = name.find('/');
    const std::string layer = layer_from_keras(name.substr(0, slash)),
                      part = slash == std::string::npos ? "" : part_from_keras(name.substr(slash + 1));
    if (layer.empty() || part.empty())
      throw input_error("{}: expected the tensors of a ResNet of Keras, found {}", keras.source,
                        printable(name));
    Tensor tensor = float_tensor_from_view(view);
    if (tensor.dim() == 4)
      tensor = tensor.permute({3, 2, 0, 1}).contiguous();  // (H, W, I, O) -> (O, I, H, W)
    if (tensor.dim() == 2) tensor = tensor.t().contiguous();
    table.tensors[layer + "." + part] = view_from_tensor(tensor);
  }
  return table;
}

ResNet resnet_from_keras(const TensorTable& keras) {
  CanonicalWeights weights;
  weights.table = resnet_table_from_keras(keras);
  ResNetConfig config = resnet_config_from_weights(weights);
  config.conv_bias = config.stride_first = true;
  config.eps = 1e-3;
  ResNet network(config);
  network->load_weights(weights.table);
  return network;
}

InputSpec keras_resnet_input() {
  InputSpec input;  // short side 256, crop 224
  const std::array<double, 3> mean = {123.68, 116.779, 103.939};
  for (int c = 0; c < 3; ++c) {
    input.mean[c] = mean[c] / 255;
    input.std[c] = 1.0 / 255;
  }
  input.order = ChannelOrder::kBgr;
  return input;
}

}  // namespace aha
