#include "aha/networks/convnext.h"

#include <charconv>

#include "aha/base/error.h"
#include "aha/networks/convnext_engine.h"
#include "aha/networks/family.h"
#include "aha/nn/module_state.h"
#include "aha/nn/norm_direction.h"

namespace aha {

Fields fields(ConvNextConfig& c) {
  Fields list;
  list.add("image_size", c.image_size, "side of the input it was trained at, in pixels").range(1, 16384);
  list.add("stem_stride", c.stem_stride, "kernel and stride of the first convolution").range(1, 64);
  list.add("depths", c.depths, "blocks of each stage").range(1, 1000);
  list.add("widths", c.widths, "channels of each stage").range(1, 65536);
  list.add("classes", c.classes, "outputs of the head").range(1, 1000000);
  list.add("eps", c.eps, "of every LayerNorm but the last").range(0, 1);
  list.add("head_eps", c.head_eps, "of the last LayerNorm").range(0, 1);
  return list;
}

ConvNextConfig convnext_config_from_weights(const CanonicalWeights& weights) {
  const auto& table = weights.table;
  ConvNextConfig c;
  c.stem_stride = axis_of(table, "stem.0.weight", 4, 2);
  c.depths.clear();
  c.widths.clear();
  for (int s = 0; table.has(fmt::format("stages.{}.blocks.0.conv_dw.weight", s)); ++s) {
    c.widths.push_back(axis_of(table, fmt::format("stages.{}.blocks.0.conv_dw.weight", s), 4, 0));
    int depth = 0;
    while (table.has(fmt::format("stages.{}.blocks.{}.conv_dw.weight", s, depth))) ++depth;
    c.depths.push_back(depth);
  }
  if (c.depths.empty())
    throw input_error("{}: expected stages.0.blocks.0.conv_dw.weight, found no stage", table.source);
  c.classes = axis_of(table, "head.fc.weight", 2, 0);
  if (weights.source == "huggingface") c.head_eps = 1e-12;
  return c;
}

void ConvNextStageImpl::reset() {
  if (previous > 0)
    downsample = register_module(
        "downsample",
        torch::nn::Sequential(ChannelNorm(previous, eps),
                              torch::nn::Conv2d(torch::nn::Conv2dOptions(previous, width, 2).stride(2))));
  blocks = register_module("blocks", torch::nn::ModuleList());
  for (int j = 0; j < depth; ++j) blocks->push_back(ConvBlock(width, eps));
}

Tensor ConvNextStageImpl::forward(Tensor x, Taps* taps, const std::string& name) {
  if (!downsample.is_empty()) x = downsample->forward(x);
  for (int j = 0; j < depth; ++j) {
    x = blocks[j]->as<ConvBlock>()->forward(x);
    if (taps) taps->offer(fmt::format("{}.block.{}", name, j), x);
  }
  if (taps) taps->offer(name, x);
  return x;
}

void ConvNextHeadImpl::reset() {
  norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(eps)));
  fc = register_module("fc", Linear(LinearOptions{width, classes}));
}

Tensor ConvNextHeadImpl::forward(const Tensor& features) {
  return fc(norm(features.mean({2, 3})));
}

void ConvNextImpl::reset() {
  const auto& c = config;
  if (c.depths.empty() || c.depths.size() != c.widths.size())
    throw input_error("convnext: expected as many depths as widths, found {} and {}", c.depths.size(),
                      c.widths.size());
  stem = register_module(
      "stem",
      torch::nn::Sequential(
          torch::nn::Conv2d(torch::nn::Conv2dOptions(3, c.widths[0], c.stem_stride).stride(c.stem_stride)),
          ChannelNorm(c.widths[0], c.eps)));
  stages = register_module("stages", torch::nn::ModuleList());
  for (size_t s = 0; s < c.depths.size(); ++s)
    stages->push_back(ConvNextStage(s == 0 ? 0 : c.widths[s - 1], c.widths[s], c.depths[s], c.eps));
  head = register_module("head", ConvNextHead(c.widths.back(), c.classes, c.head_eps));
}

Tensor ConvNextImpl::features(const Tensor& input, Taps* taps) {
  check_shape(input, {-1, 3, -1, -1}, "input of the ConvNeXt");
  const int64_t least = int64_t{config.stem_stride} << (config.depths.size() - 1);
  if (input.size(2) < least || input.size(3) < least)
    throw input_error("input of the ConvNeXt: expected at least {0} x {0} pixels, found {1} x {2}", least,
                      input.size(2), input.size(3));
  if (taps) taps->check(tap_names(), "ConvNeXt");
  auto x = stem->forward(input.contiguous(at::MemoryFormat::ChannelsLast));
  if (taps) taps->offer("stem", x);
  for (size_t s = 0; s < config.depths.size(); ++s)
    x = stages[s]->as<ConvNextStage>()->forward(x, taps, fmt::format("stage.{}", s));
  if (taps) taps->offer("features", x);
  return x;
}

Tensor ConvNextImpl::forward(const Tensor& x, Taps* taps) {
  return head(features(x, taps));
}

Tensor ConvNextImpl::logits_from_features(const Tensor& features) {
  return head(features);
}

Tensor ConvNextImpl::head_direction(const Tensor& read, const Tensor& weights) {
  const torch::NoGradGuard no_grad;
  return through_norm(weights.matmul(head->fc->weight) * head->norm->weight, read, config.head_eps);
}

std::vector<std::string> ConvNextImpl::tap_names() const {
  std::vector<std::string> names = {"stem"};
  for (size_t s = 0; s < config.depths.size(); ++s) {
    for (int j = 0; j < config.depths[s]; ++j) names.push_back(fmt::format("stage.{}.block.{}", s, j));
    names.push_back(fmt::format("stage.{}", s));
  }
  names.push_back("features");
  return names;
}

void ConvNextImpl::initialize(uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (auto& item : named_parameters()) {
    auto& parameter = item.value();
    const bool is_bias = item.key().ends_with(".bias");
    if (parameter.dim() >= 2)
      parameter.normal_(0, 0.02, generator).clamp_(-0.04, 0.04);
    else if (is_bias)
      parameter.zero_();
  }
}

void ConvNextImpl::set_precision(std::optional<Precision> precision) {
  for (auto& stage : *stages)
    for (auto& block : *stage->as<ConvNextStage>()->blocks) block->as<ConvBlock>()->set_precision(precision);
}

nlohmann::json ConvNextImpl::config_json() const {
  return json_from_config(config);
}

std::vector<std::string> ConvNextImpl::default_levels() const {
  std::vector<std::string> levels;
  for (size_t s = 0; s < config.depths.size(); ++s) levels.push_back(fmt::format("stage.{}", s));
  return levels;
}

void ConvNextImpl::set_layer_scale(double scale) {
  const torch::NoGradGuard no_grad;
  for (auto& item : named_parameters())
    if (item.key().ends_with("gamma")) item.value().fill_(scale);
}

namespace {

// N of stage.N, the last one for "features"; nothing if the tap is of another kind.
std::optional<int> stage_of(std::string_view tap, int last) {
  if (tap == "features") return last;
  constexpr std::string_view kStage = "stage.";
  int number = 0;
  const auto* end = tap.data() + tap.size();
  if (!tap.starts_with(kStage) || std::from_chars(tap.data() + kStage.size(), end, number).ptr != end)
    return std::nullopt;
  return number;
}

class ConvNextEngine : public Engine {
 public:
  ConvNextEngine(const FrozenConvNextWeights& weights, Precision precision)
      : last_stage_(static_cast<int>(weights.stages.size()) - 1), frozen_(weights, precision) {}

  Tensor logits(const Tensor& pixels) override { return frozen_.logits(pixels); }
  std::optional<PerturbedScores> perturbed_scores(const PerturbedImages& images,
                                                  bool with_gradient) override {
    return frozen_.perturbed_scores(images, with_gradient);
  }
  bool shows(const std::vector<std::string>& taps) const override {
    return std::ranges::all_of(taps, [&](const auto& tap) { return stage_of(tap, last_stage_).has_value(); });
  }
  std::vector<Tensor> taps(const Tensor& pixels, const std::vector<std::string>& names) override {
    std::vector<int> stages;
    for (const auto& name : names) stages.push_back(*stage_of(name, last_stage_));
    return frozen_.features_after(pixels, stages);
  }
  EngineMemory memory() const override { return {frozen_.packed_bytes(), frozen_.workspace_bytes()}; }

 private:
  const int last_stage_;
  FrozenConvNext frozen_;
};

}  // namespace

std::unique_ptr<Engine> ConvNextImpl::make_engine(const InputSpec& input, Precision precision) {
  if (!engine_fits(config, input)) return nullptr;
  ConvNext self(std::dynamic_pointer_cast<ConvNextImpl>(shared_from_this()));
  return std::make_unique<ConvNextEngine>(frozen_weights_from(self, input), precision);
}

}  // namespace aha
