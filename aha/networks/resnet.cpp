#include "aha/networks/resnet.h"

#include <map>
#include <optional>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/kernel_set.h"
#include "aha/networks/family.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

// A convolution and the BatchNorm behind it.
using ConvNorm = std::function<Tensor(const torch::nn::Conv2d& conv, const BatchNorm& norm, const Tensor& x)>;

Tensor conv_then_norm(const torch::nn::Conv2d& conv, const BatchNorm& norm, const Tensor& x) {
  return BatchNorm(norm)(torch::nn::Conv2d(conv)(x));
}

torch::nn::Conv2d convolution(int inputs, int outputs, int kernel, int stride, const ResNetConfig& c) {
  return torch::nn::Conv2d(
      torch::nn::Conv2dOptions(inputs, outputs, kernel).stride(stride).padding(kernel / 2).bias(c.conv_bias));
}

Tensor block_forward(const ResNetBlockImpl& b, const Tensor& x, const ConvNorm& conv_norm) {
  Tensor y = torch::relu(conv_norm(b.conv1, b.bn1, x));
  y = conv_norm(b.conv2, b.bn2, y);
  if (b.config.bottleneck) y = conv_norm(b.conv3, b.bn3, torch::relu(y));
  if (b.downsample.is_empty()) return torch::relu(y + x);
  const torch::nn::Conv2d shortcut(b.downsample->ptr<torch::nn::Conv2dImpl>(0));
  return torch::relu(y + conv_norm(shortcut, BatchNorm(b.downsample->ptr<BatchNormImpl>(1)), x));
}

// x (B, 3, H, W) normalized -> logits (B, C)
Tensor network_forward(const ResNetImpl& net, const Tensor& input, Taps* taps, const ConvNorm& conv_norm) {
  const auto offer = [&](const std::string& name, const Tensor& tensor) {
    if (taps) taps->offer(name, tensor);
  };
  Tensor x = torch::relu(conv_norm(net.conv1, net.bn1, input.contiguous(at::MemoryFormat::ChannelsLast)));
  if (net.config.stem_kernel == 7) x = torch::max_pool2d(x, 3, 2, 1);
  offer("stem", x);
  for (size_t s = 0; s < net.layers.size(); ++s) {
    for (size_t j = 0; j < net.layers[s]->size(); ++j) {
      x = block_forward(*net.layers[s]->ptr<ResNetBlockImpl>(j), x, conv_norm);
      offer(fmt::format("stage.{}.block.{}", s, j), x);
    }
    offer(fmt::format("stage.{}", s), x);
  }
  offer("features", x);
  // Of one image these are not worth a second thread, and their last bits must not depend on it.
  std::optional<OneThread> one_thread;
  if (x.size(0) == 1) one_thread.emplace();
  const auto exact = x.scalar_type() == torch::kBFloat16 ? torch::kFloat32 : x.scalar_type();
  return Linear(net.fc)(x.mean({2, 3}, false, exact));
}

}  // namespace

Fields fields(ResNetConfig& c) {
  Fields list;
  list.add("image_size", c.image_size, "side of the input it was trained at, in pixels").range(1, 16384);
  list.add("stem_kernel", c.stem_kernel,
           "of the first convolution: 7, or 3 (stride 1, no pooling) for small images")
      .range(3, 7);
  list.add("bottleneck", c.bottleneck, "blocks of three convolutions instead of two");
  list.add("depths", c.depths, "blocks of each stage").range(1, 1000);
  list.add("widths", c.widths, "channels of the 3x3 convolutions of each stage").range(1, 65536);
  list.add("classes", c.classes, "outputs of the head").range(1, 1000000);
  list.add("conv_bias", c.conv_bias, "convolutions with biases");
  list.add("stride_first", c.stride_first,
           "the stride of a bottleneck is in its first 1x1 convolution instead of the 3x3");
  list.add("eps", c.eps, "of every BatchNorm").range(0, 1);
  return list;
}

ResNetConfig resnet_config_from_weights(const CanonicalWeights& weights) {
  const auto& table = weights.table;
  ResNetConfig c;
  c.stem_kernel = axis_of(table, "conv1.weight", 4, 2);
  c.bottleneck = table.has("layer1.0.conv3.weight");
  c.depths.clear();
  c.widths.clear();
  for (int s = 1; table.has(fmt::format("layer{}.0.conv2.weight", s)); ++s) {
    c.widths.push_back(axis_of(table, fmt::format("layer{}.0.conv2.weight", s), 4, 0));
    int depth = 0;
    while (table.has(fmt::format("layer{}.{}.conv2.weight", s, depth))) ++depth;
    c.depths.push_back(depth);
  }
  c.classes = axis_of(table, "fc.weight", 2, 0);
  return c;
}

void BatchNormImpl::reset() {
  weight = register_parameter("weight", torch::ones({width}));
  bias = register_parameter("bias", torch::zeros({width}));
  running_mean = register_buffer("running_mean", torch::zeros({width}));
  running_var = register_buffer("running_var", torch::ones({width}));
}

Tensor BatchNormImpl::forward(const Tensor& x) {
  return torch::batch_norm(x, weight, bias, running_mean, running_var, is_training(), /*momentum=*/0.1, eps,
                           /*cudnn_enabled=*/true);
}

void ResNetBlockImpl::reset() {
  const auto& c = config;
  const int first = !c.bottleneck || c.stride_first ? stride : 1, second = stride / first;
  const auto conv = [&](const char* name, int from, int to, int kernel, int step) {
    return register_module(name, convolution(from, to, kernel, step, c));
  };
  const auto norm = [&](const char* name, int channels) {
    return register_module(name, BatchNorm(channels, c.eps));
  };
  conv1 = conv("conv1", inputs, width, c.bottleneck ? 1 : 3, first);
  bn1 = norm("bn1", width);
  conv2 = conv("conv2", width, width, 3, second);
  bn2 = norm("bn2", width);
  if (c.bottleneck) {
    conv3 = conv("conv3", width, outputs(), 1, 1);
    bn3 = norm("bn3", outputs());
  }
  if (stride != 1 || inputs != outputs())
    downsample = register_module(
        "downsample",
        torch::nn::Sequential(convolution(inputs, outputs(), 1, stride, c), BatchNorm(outputs(), c.eps)));
}

Tensor ResNetBlockImpl::forward(const Tensor& x) {
  return block_forward(*this, x, conv_then_norm);
}

void ResNetImpl::reset() {
  const auto& c = config;
  if (c.depths.empty() || c.depths.size() != c.widths.size())
    throw input_error("resnet: expected as many depths as widths, found {} and {}", c.depths.size(),
                      c.widths.size());
  if (c.stem_kernel != 3 && c.stem_kernel != 7)
    throw input_error("resnet: expected a stem kernel of 3 or 7, found {}", c.stem_kernel);
  conv1 = register_module("conv1", convolution(3, c.widths[0], c.stem_kernel, c.stem_kernel == 7 ? 2 : 1, c));
  bn1 = register_module("bn1", BatchNorm(c.widths[0], c.eps));
  layers.clear();
  int width = c.widths[0];
  for (size_t s = 0; s < c.depths.size(); ++s) {
    layers.push_back(register_module(fmt::format("layer{}", s + 1), torch::nn::ModuleList()));
    for (int j = 0; j < c.depths[s]; ++j) {
      const ResNetBlock block(width, c.widths[s], s > 0 && j == 0 ? 2 : 1, c);
      width = block->outputs();
      layers[s]->push_back(block);
    }
  }
  fc = register_module("fc", Linear(LinearOptions{width, c.classes}));
}

nlohmann::json ResNetImpl::config_json() const {
  return json_from_config(config);
}

Tensor ResNetImpl::forward(const Tensor& x, Taps* taps) {
  check_shape(x, {-1, 3, -1, -1}, "input of the ResNet");
  if (taps) taps->check(tap_names(), "ResNet");
  return network_forward(*this, x, taps, conv_then_norm);
}

Tensor ResNetImpl::logits_from_features(const Tensor& features) {
  return fc(features.mean({2, 3}));
}

std::vector<std::string> ResNetImpl::tap_names() const {
  std::vector<std::string> names = {"stem"};
  for (size_t s = 0; s < config.depths.size(); ++s) {
    for (int j = 0; j < config.depths[s]; ++j) names.push_back(fmt::format("stage.{}.block.{}", s, j));
    names.push_back(fmt::format("stage.{}", s));
  }
  names.push_back("features");
  return names;
}

std::vector<std::string> ResNetImpl::default_levels() const {
  std::vector<std::string> levels;
  for (size_t s = 0; s < config.depths.size(); ++s) levels.push_back(fmt::format("stage.{}", s));
  return levels;
}

void ResNetImpl::initialize(uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const std::string last_norm = config.bottleneck ? ".bn3.weight" : ".bn2.weight";
  for (auto& item : named_parameters()) {
    auto& parameter = item.value();
    if (parameter.dim() == 4)
      parameter.normal_(
          0, std::sqrt(2.0 / static_cast<double>(parameter.size(0) * parameter.size(2) * parameter.size(3))),
          generator);
    else if (parameter.dim() == 2)
      parameter.normal_(0, 0.01, generator);
    else if (item.key().ends_with(last_norm))
      parameter.zero_();
  }
}

namespace {

// On libtorch, with every BatchNorm folded. Libtorch's last bits differ with the number of images and, in its
// 1x1 convolutions of float32, with that of threads: without a gradient each image is computed by itself, on
// one thread where there are images enough, else on all, the 1x1 convolutions of float32 on one.
//
// In bf16 the first convolution sees float32 pixels; from there on convolutions, sums and ReLU are bf16. Only
// where oneDNN gains by it: on AVX512-BF16 without tiles. With a gradient it is float32.
class ResNetEngine : public Engine {
 public:
  ResNetEngine(std::shared_ptr<ResNetImpl> network, const InputSpec& input, Precision precision)
      : network_(std::move(network)),
        input_(input),
        bf16_(precision == Precision::kBf16 && best_kernel_set(precision).isa == Isa::kAvx512Bf16) {
    const torch::NoGradGuard no_grad;
    const auto fold = [&](const torch::nn::Conv2d& conv, const BatchNorm& norm, const Tensor& x) {
      const Tensor scale =
          norm->weight.to(torch::kFloat64) / torch::sqrt(norm->running_var.to(torch::kFloat64) + norm->eps);
      const Tensor mean = conv->bias.defined() ? norm->running_mean - conv->bias : norm->running_mean;
      auto& folded = folded_[conv.get()];
      folded.weight = (conv->weight * scale.view({-1, 1, 1, 1}))
                          .to(torch::kFloat32)
                          .contiguous(at::MemoryFormat::ChannelsLast);
      folded.bias = (norm->bias - mean * scale).to(torch::kFloat32);
      bytes_ += 4 * (folded.weight.numel() + folded.bias.numel());
      if (bf16_) {
        folded.weight_bf16 = folded.weight.to(torch::kBFloat16);
        folded.bias_bf16 = folded.bias.to(torch::kBFloat16);
        bytes_ += 2 * (folded.weight.numel() + folded.bias.numel());
      }
      return conv_norm_(conv, norm, x);
    };
    network_forward(*network_, torch::zeros({1, 3, input.size, input.size}), nullptr, fold);
  }

  Tensor logits(const Tensor& pixels) override {
    if (torch::GradMode::is_enabled() && pixels.requires_grad()) return run(pixels, nullptr, conv_norm_);
    std::vector<Tensor> rows(pixels.size(0));
    each_image(pixels, [&](int64_t b, const Tensor& image) { rows[b] = run(image, nullptr, alone_); });
    return torch::cat(rows);
  }

  bool shows(const std::vector<std::string>&) const override { return true; }
  std::vector<Tensor> taps(const Tensor& pixels, const std::vector<std::string>& names) override {
    std::vector<std::vector<Tensor>> parts(names.size(), std::vector<Tensor>(pixels.size(0)));
    each_image(pixels, [&](int64_t b, const Tensor& image) {
      Taps kept(names);
      run(image, &kept, alone_);
      for (size_t i = 0; i < names.size(); ++i) parts[i][b] = kept.at(names[i]).to(torch::kFloat32);
    });
    std::vector<Tensor> values;
    for (const auto& part : parts) values.push_back(torch::cat(part));
    return values;
  }

  EngineMemory memory() const override { return {bytes_, 0}; }

 private:
  struct Folded {
    Tensor weight, bias, weight_bf16, bias_bf16;
  };

  Tensor run(const Tensor& pixels, Taps* taps, const ConvNorm& conv_norm) const {
    return network_forward(*network_, network_input(pixels, input_), taps, conv_norm);
  }

  // work(b, image b) without a gradient.
  template <class Work>
  void each_image(const Tensor& pixels, const Work& work) const {
    const int64_t B = pixels.size(0);
    const auto one = [&](int64_t b) {
      const torch::NoGradGuard no_grad;
      work(b, pixels.narrow(0, b, 1));
    };
    if (B >= threads()) return one_thread_each(B, one);
    for (int64_t b = 0; b < B; ++b) one(b);
  }

  static Tensor convolved(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const torch::nn::Conv2d& conv) {
    return torch::conv2d(x, weight, bias, conv->options.stride(), weight.size(2) / 2);
  }

  const std::shared_ptr<ResNetImpl> network_;
  const InputSpec input_;
  const bool bf16_;
  std::map<const torch::nn::Conv2dImpl*, Folded> folded_;
  int64_t bytes_ = 0;
  const ConvNorm conv_norm_ = [this](const torch::nn::Conv2d& conv, const BatchNorm&, const Tensor& x) {
    const auto& folded = folded_.at(conv.get());
    return convolved(x, folded.weight, folded.bias, conv);
  };
  // Of one image by itself.
  const ConvNorm alone_ = [this](const torch::nn::Conv2d& conv, const BatchNorm&, const Tensor& x) {
    const auto& folded = folded_.at(conv.get());
    const bool first = conv.get() == network_->conv1.get();
    if (bf16_ && !first) return convolved(x, folded.weight_bf16, folded.bias_bf16, conv);
    std::optional<OneThread> one_thread;
    if (folded.weight.size(2) == 1) one_thread.emplace();
    const Tensor y = convolved(x, folded.weight, folded.bias, conv);
    return bf16_ ? y.to(torch::kBFloat16) : y;
  };
};

// A BatchNorm's four tensors; how many batches it has seen is of no use to a frozen one.
void add_norm(std::vector<Rule>& rules, const std::string& name) {
  for (const char* part : {".*", ".running_mean", ".running_var"})
    rules.push_back({name + part, name + part});
  rules.push_back({name + ".num_batches_tracked", ""});
}

std::vector<Rule> resnet_rules() {
  std::vector<Rule> rules = {{"conv1.weight", "conv1.weight"}, {"fc.*", "fc.*"}};
  add_norm(rules, "bn1");
  for (const std::string block : {"layer1.{j}.", "layer2.{j}.", "layer3.{j}.", "layer4.{j}."}) {
    for (const std::string number : {"1", "2", "3"}) {
      const auto weight = fmt::format("{}conv{}.weight", block, number);
      rules.push_back({weight, weight});
      add_norm(rules, fmt::format("{}bn{}", block, number));
    }
    rules.push_back({block + "downsample.0.weight", block + "downsample.0.weight"});
    add_norm(rules, block + "downsample.1");
  }
  return rules;
}

Architecture resnet(const std::string& name, const std::string& summary, std::vector<int> depths,
                    bool bottleneck) {
  ResNetConfig c;
  c.depths = std::move(depths);
  c.bottleneck = bottleneck;
  return classifier_of(name, summary, c);
}

}  // namespace

std::unique_ptr<Engine> ResNetImpl::make_engine(const InputSpec& input, Precision precision) {
  return std::make_unique<ResNetEngine>(std::dynamic_pointer_cast<ResNetImpl>(shared_from_this()), input,
                                        precision);
}

NetworkFamily resnet_family() {
  NetworkFamily family;
  family.name = "resnet";
  family.described = "ResNet";
  family.free_keys = {"classes", "image_size"};
  family.sizes = {
      resnet("resnet18", "ResNet-18, 12 M parameters", {2, 2, 2, 2}, false),
      resnet("resnet34", "ResNet-34, 22 M parameters", {3, 4, 6, 3}, false),
      resnet("resnet50", "ResNet-50, 26 M parameters", {3, 4, 6, 3}, true),
      resnet("resnet101", "ResNet-101, 45 M parameters", {3, 4, 23, 3}, true),
  };
  // torchvision's first weights. Its second ones (short side 232) and timm's have the same tensor names: give
  // --input-size and, for another resize, a card.
  family.recipes = {{"resnet", "", 0, ResizeRule::kShortSide, 256, Filter::kBilinear, true, false}};
  family.dialects = {{"torchvision",
                      "resnet",
                      {"conv1.weight", "bn1.running_mean", "layer1.0.conv1.weight"},
                      resnet_rules()}};
  family.config_from_weights = [](const CanonicalWeights& weights, const nlohmann::json& known) {
    auto found = resnet_config_from_weights(weights);
    found.image_size = known.at("image_size");
    return json_from_config(found);
  };
  use_network<ResNet, ResNetConfig>(family);
  return family;
}

}  // namespace aha
