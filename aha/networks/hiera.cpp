#include "aha/networks/hiera.h"

#include <algorithm>
#include <cmath>

#include "aha/base/error.h"
#include "aha/networks/family.h"
#include "aha/networks/image_by_image.h"

namespace aha {
namespace {

int64_t parts_of(int64_t size, int64_t part) {
  return (size + part - 1) / part;
}

// (B, h, w, C) -> (B, h / 2, w / 2, C)
Tensor halved(const Tensor& x) {
  return torch::max_pool2d(x.permute({0, 3, 1, 2}), 2).permute({0, 2, 3, 1});
}

// (B, rows * side, columns * side, C) -> (B * rows * columns, side, side, C)
Tensor windows_from(const Tensor& x, int64_t rows, int64_t columns) {
  const int64_t side = x.size(1) / rows;
  return x.reshape({x.size(0), rows, side, columns, side, -1})
      .transpose(2, 3)
      .reshape({-1, side, side, x.size(3)});
}

// And the other direction.
Tensor joined_windows(const Tensor& windows, int64_t rows, int64_t columns) {
  const int64_t side = windows.size(1);
  return windows.reshape({-1, rows, columns, side, side, windows.size(3)})
      .transpose(2, 3)
      .reshape({-1, rows * side, columns * side, windows.size(3)});
}

torch::nn::LayerNorm hiera_norm(int width, double eps) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}).eps(eps));
}

}  // namespace

Fields fields(HieraConfig& c) {
  Fields list;
  list.add("image_size", c.image_size, "side of the input it was trained at, in pixels").range(1, 16384);
  list.add("width", c.width, "channels of the first stage; each stage doubles them").range(1, 65536);
  list.add("heads", c.heads, "attention heads of the first stage; each stage doubles them").range(1, 1024);
  list.add("depths", c.depths, "blocks of each stage").range(1, 1000);
  list.add("windows", c.windows, "side of the windows of each stage, in tokens").range(1, 1024);
  list.add("global_blocks", c.global_blocks, "blocks, counted through all stages, without windows")
      .range(0, 10000);
  list.add("position_side", c.position_side, "side of the coarse map of places").range(1, 1024);
  list.add("classes", c.classes, "0: there is no head").range(0, 0);
  list.add("eps", c.eps, "of every LayerNorm").range(0, 1);
  return list;
}

HieraConfig hiera_config_from_weights(const CanonicalWeights& weights, const HieraConfig& known) {
  const auto& table = weights.table;
  HieraConfig c = known;
  c.width = axis_of(table, "patch_embed.proj.weight", 4, 0);
  c.position_side = axis_of(table, "pos_embed", 4, 2);
  c.windows.at(0) = axis_of(table, "pos_embed_window", 4, 2);
  c.depths = {0};
  for (int i = 0; table.has(fmt::format("blocks.{}.norm1.weight", i)); ++i) {
    if (table.has(fmt::format("blocks.{}.proj.weight", i))) c.depths.push_back(0);
    ++c.depths.back();
  }
  return c;
}

void HieraAttentionImpl::reset() {
  qkv = register_module("qkv", Linear(LinearOptions{options.inputs, 3 * options.width}));
  proj = register_module("proj", Linear(LinearOptions{options.width, options.width}));
}

Tensor HieraAttentionImpl::forward(const Tensor& x) {
  auto thirds = qkv(x).chunk(3, -1);  // (n, h, w, width)
  if (options.halving) thirds[0] = halved(thirds[0]);
  const int64_t h = thirds[0].size(1), w = thirds[0].size(2);
  for (auto& part : thirds)  // (n, heads, T, d)
    part = part.reshape({x.size(0), -1, options.heads, options.width / options.heads}).transpose(1, 2);
  const auto &q = thirds[0], &k = thirds[1], &v = thirds[2];
  const auto attention =
      torch::softmax(torch::matmul(q / std::sqrt(static_cast<double>(q.size(3))), k.transpose(2, 3)), -1);
  return proj(torch::matmul(attention, v).transpose(1, 2).reshape({x.size(0), h, w, options.width}));
}

void HieraBlockImpl::reset() {
  const auto& o = options;
  norm1 = register_module("norm1", hiera_norm(o.inputs, o.eps));
  attn = register_module("attn", HieraAttention(o));
  norm2 = register_module("norm2", hiera_norm(o.width, o.eps));
  mlp = register_module("mlp", Mlp(MlpOptions{o.width, 4 * o.width}));
  if (o.halving) proj = register_module("proj", Linear(LinearOptions{o.inputs, o.width}));
}

Tensor HieraBlockImpl::forward(const Tensor& x) {
  const Tensor normed = norm1(x);
  const Tensor shortcut = options.halving ? halved(proj(normed)) : x;
  Tensor seen;
  if (options.window == 0) {
    seen = attn(normed);
  } else {
    const int64_t side = options.window, h = x.size(1), w = x.size(2);
    const int64_t rows = parts_of(h, side), columns = parts_of(w, side);
    const Tensor padded = torch::constant_pad_nd(normed, {0, 0, 0, columns * side - w, 0, rows * side - h});
    seen = joined_windows(attn(windows_from(padded, rows, columns)), rows, columns)
               .slice(1, 0, shortcut.size(1))
               .slice(2, 0, shortcut.size(2));
  }
  const Tensor y = shortcut + seen;
  return y + mlp(norm2(y));
}

void HieraImpl::reset() {
  const auto& c = config;
  if (c.depths.empty() || c.depths.size() != c.windows.size())
    throw input_error("hiera: expected as many windows as depths, found {} and {}", c.windows.size(),
                      c.depths.size());
  if (c.depths.size() > 8) throw input_error("hiera: expected at most 8 stages, found {}", c.depths.size());
  if (c.width % c.heads != 0)
    throw input_error("hiera: width {} cannot be split into {} heads", c.width, c.heads);
  patch_embed = register_module("patch_embed", torch::nn::Sequential());
  patch_embed->push_back("proj",
                         torch::nn::Conv2d(torch::nn::Conv2dOptions(3, c.width, 7).stride(4).padding(3)));
  pos_embed = register_parameter("pos_embed", torch::zeros({1, c.width, c.position_side, c.position_side}));
  pos_embed_window =
      register_parameter("pos_embed_window", torch::zeros({1, c.width, c.windows[0], c.windows[0]}));
  blocks = register_module("blocks", torch::nn::ModuleList());
  int width = c.width, heads = c.heads;
  for (size_t s = 0; s < c.depths.size(); ++s)
    for (int j = 0; j < c.depths[s]; ++j) {
      const bool halving = s > 0 && j == 0;
      const int inputs = width, block = static_cast<int>(blocks->size());
      if (halving) width *= 2, heads *= 2;
      int window = c.windows[halving ? s - 1 : s];
      if (std::ranges::find(c.global_blocks, block) != c.global_blocks.end()) window = 0;
      if (halving && window % 2 != 0)
        throw input_error("hiera: expected windows of an even side before another stage, found {}", window);
      blocks->push_back(HieraBlock(HieraBlockOptions{inputs, width, heads, window, halving, c.eps}));
    }
}

nlohmann::json HieraImpl::config_json() const {
  return json_from_config(config);
}

std::string HieraImpl::size_refusal(int side) const {
  const int least = 4 * ((1 << (config.depths.size() - 1)) - 1) + 1;  // one token is left in the last stage
  return side < least ? fmt::format("at least {} pixels", least) : "";
}

Tensor HieraImpl::positions(int64_t h, int64_t w) const {
  const int64_t side = pos_embed_window.size(2);
  const Tensor tiles = pos_embed_window.repeat({1, 1, parts_of(h, side), parts_of(w, side)});
  const std::vector<int64_t> size = {h, w};
  const Tensor coarse = at::upsample_bicubic2d(pos_embed, size, /*align_corners=*/false);
  return (coarse + tiles.slice(2, 0, h).slice(3, 0, w)).permute({0, 2, 3, 1});
}

Tensor HieraImpl::forward(const Tensor& x, Taps* taps) {
  check_shape(x, {-1, 3, -1, -1}, "input of the Hiera");
  const auto refusal = size_refusal(static_cast<int>(std::min(x.size(2), x.size(3))));
  if (!refusal.empty())
    throw input_error("input of the Hiera: expected sides of {}, found {} x {}", refusal, x.size(2),
                      x.size(3));
  if (taps) taps->check(tap_names(), "Hiera");
  const auto offer = [&](const std::string& name, const Tensor& tokens) {
    if (taps && taps->wants(name)) taps->offer(name, tokens.permute({0, 3, 1, 2}));
  };
  Tensor y = patch_embed->forward(x).permute({0, 2, 3, 1});
  y = y + positions(y.size(1), y.size(2));
  offer("embed", y);
  size_t block = 0;
  for (size_t s = 0; s < config.depths.size(); ++s) {
    for (int j = 0; j < config.depths[s]; ++j) {
      y = blocks[block++]->as<HieraBlock>()->forward(y);
      offer(fmt::format("stage.{}.block.{}", s, j), y);
    }
    offer(fmt::format("stage.{}", s), y);
  }
  return y.mean({1, 2});
}

std::vector<std::string> HieraImpl::tap_names() const {
  std::vector<std::string> names = {"embed"};
  for (size_t s = 0; s < config.depths.size(); ++s) {
    for (int j = 0; j < config.depths[s]; ++j) names.push_back(fmt::format("stage.{}.block.{}", s, j));
    names.push_back(fmt::format("stage.{}", s));
  }
  return names;
}

std::vector<std::string> HieraImpl::default_levels() const {
  std::vector<std::string> levels;
  for (size_t s = 0; s < config.depths.size(); ++s) levels.push_back(fmt::format("stage.{}", s));
  return levels;
}

void HieraImpl::initialize(uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (auto& item : named_parameters()) {
    auto& parameter = item.value();
    if (parameter.dim() >= 2)
      parameter.normal_(0, 0.02, generator).clamp_(-0.04, 0.04);
    else if (item.key().ends_with(".bias"))
      parameter.zero_();
  }
}

namespace {

class HieraEngine : public ImageByImage {
 public:
  HieraEngine(std::shared_ptr<HieraImpl> network, const InputSpec& input)
      : network_(std::move(network)), input_(input) {}

 private:
  Tensor run(const Tensor& pixels, Taps* taps) const override {
    return network_->forward(network_input(pixels, input_), taps);
  }

  const std::shared_ptr<HieraImpl> network_;
  const InputSpec input_;
};

// Of the image encoder whose tensors begin with `prefix`. Everything else of SAM 2 is left out.
std::vector<Rule> hiera_rules(const std::string& prefix, const std::string& fc1, const std::string& fc2) {
  std::vector<Rule> rules;
  for (const std::string name : {"patch_embed.proj.*", "pos_embed", "pos_embed_window"})
    rules.push_back({prefix + name, name});
  for (const std::string part : {"norm1.*", "attn.qkv.*", "attn.proj.*", "norm2.*", "proj.*"})
    rules.push_back({prefix + "blocks.{i}." + part, "blocks.{i}." + part});
  rules.push_back({fmt::format("{}blocks.{{i}}.mlp.{}.*", prefix, fc1), "blocks.{i}.mlp.fc1.*"});
  rules.push_back({fmt::format("{}blocks.{{i}}.mlp.{}.*", prefix, fc2), "blocks.{i}.mlp.fc2.*"});
  for (const char* other : {"image_encoder.neck.**", "neck.**", "memory_attention.**", "memory_encoder.**",
                            "sam_prompt_encoder.**", "sam_mask_decoder.**", "mask_downsample.**",
                            "obj_ptr_proj.**", "obj_ptr_tpos_proj.**", "maskmem_tpos_enc", "no_mem_embed",
                            "no_mem_pos_enc", "no_obj_ptr", "no_obj_embed_spatial"})
    rules.push_back({other, ""});
  return rules;
}

std::vector<Dialect> hiera_dialects() {
  return {
      {"sam2-whole",
       "hiera",
       {"image_encoder.trunk.pos_embed_window"},
       hiera_rules("image_encoder.trunk.", "layers.0", "layers.1")},
      {"sam2-encoder", "hiera", {"trunk.pos_embed_window"}, hiera_rules("trunk.", "layers.0", "layers.1")},
      {"sam2-trunk",
       "hiera",
       {"pos_embed_window", "blocks.0.mlp.layers.0.weight"},
       hiera_rules("", "layers.0", "layers.1")},
      {"aha", "hiera", {"pos_embed_window", "blocks.0.mlp.fc1.weight"}, hiera_rules("", "fc1", "fc2")},
  };
}

Architecture hiera(const std::string& name, const std::string& summary, int width, int heads,
                   std::vector<int> depths, std::vector<int> global_blocks) {
  HieraConfig c;
  c.width = width;
  c.heads = heads;
  c.depths = std::move(depths);
  c.global_blocks = std::move(global_blocks);
  if (name == "hiera_base_plus") c.position_side = 14;
  if (name == "hiera_large") c.windows = {8, 4, 16, 8};
  return encoder_of(name, summary, c);
}

}  // namespace

std::unique_ptr<Engine> HieraImpl::make_engine(const InputSpec& input, Precision) {
  return std::make_unique<HieraEngine>(std::dynamic_pointer_cast<HieraImpl>(shared_from_this()), input);
}

NetworkFamily hiera_family() {
  NetworkFamily family;
  family.name = "hiera";
  family.described = "Hiera of SAM 2";
  family.free_keys = {"image_size"};
  family.sizes = {
      hiera("hiera_tiny", "Hiera-Tiny of SAM 2 without a head, 27 M parameters", 96, 1, {1, 2, 7, 2},
            {5, 7, 9}),
      hiera("hiera_small", "Hiera-Small of SAM 2 without a head, 34 M parameters", 96, 1, {1, 2, 11, 2},
            {7, 10, 13}),
      hiera("hiera_base_plus", "Hiera-Base+ of SAM 2 without a head, 69 M parameters", 112, 2, {2, 3, 16, 3},
            {12, 16, 20}),
      hiera("hiera_large", "Hiera-Large of SAM 2 without a head, 212 M parameters", 144, 2, {2, 6, 36, 4},
            {23, 33, 43}),
  };
  // SAM 2 stretches images to a square.
  family.recipes = {{"hiera", "", 0, ResizeRule::kStretch, 0, Filter::kBilinear, false, false}};
  family.dialects = hiera_dialects();
  family.config_from_weights = [](const CanonicalWeights& weights, const nlohmann::json& known) {
    return json_from_config(
        hiera_config_from_weights(weights, config_from_json<HieraConfig>(known, weights.table.source)));
  };
  use_network<Hiera, HieraConfig>(family);
  return family;
}

}  // namespace aha
