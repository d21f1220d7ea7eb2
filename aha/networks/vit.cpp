#include "aha/networks/vit.h"

#include <charconv>
#include <cmath>

#include "aha/base/error.h"
#include "aha/base/square_side.h"
#include "aha/networks/family.h"
#include "aha/networks/vit_engine.h"
#include "aha/nn/block_relevance.h"
#include "aha/nn/module_state.h"
#include "aha/nn/norm_direction.h"

namespace aha {
namespace {

// table (1, D, g, g) -> (1, D, h, w)
Tensor resampled_positions(const Tensor& table, int64_t h, int64_t w, const std::string& rule) {
  const std::vector<int64_t> size = {h, w};
  if (rule == "align_corners") return at::upsample_bicubic2d(table, size, true);
  if (rule == "plain") return at::upsample_bicubic2d(table, size, false);
  if (rule == "scale_offset") {
    // The sampling step is g / (g' + 0.1), not g / g': the factor reaches the kernel as it is.
    const double g = static_cast<double>(table.size(2));
    return at::upsample_bicubic2d(table, size, false, (h + 0.1) / g, (w + 0.1) / g);
  }
  return at::_upsample_bicubic2d_aa(table, size, false);
}

int count_blocks(const TensorTable& table) {
  int depth = 0;
  while (table.has(fmt::format("blocks.{}.norm1.weight", depth))) ++depth;
  return depth;
}

}  // namespace

Fields fields(VitConfig& c) {
  Fields list;
  list.add("image_size", c.image_size, "side of the input the position table was made for, in pixels")
      .range(1, 16384);
  list.add("patch", c.patch, "side of a patch in pixels").range(1, 1024);
  list.add("width", c.width, "channels of a token").range(1, 65536);
  list.add("depth", c.depth, "blocks").range(1, 1000);
  list.add("heads", c.heads, "attention heads; divides width").range(1, 1024);
  list.add("mlp_hidden", c.mlp_hidden, "hidden channels of the MLP").range(1, 262144);
  list.add("registers", c.registers, "register tokens").range(0, 64);
  list.add("classes", c.classes, "outputs of the head; 0 = no head").range(0, 1000000);
  list.add("distilled", c.distilled, "a distillation token and a second head");
  list.add("layer_scale", c.layer_scale, "a learned factor on each residual branch");
  list.add("swiglu", c.swiglu, "SwiGLU instead of the GELU MLP");
  list.add("rope", c.rope, "rotary positions instead of a table");
  list.add("rope_formula", c.rope_formula, "rotary periods from the formula even where the file stores them");
  list.add("eps", c.eps, "of every LayerNorm").range(0, 1);
  list.add("position_rule", c.position_rule, "how the position table is resampled for another input size")
      .choices({"align_corners", "antialias", "plain", "scale_offset"});
  return list;
}

VitConfig vit_config_from_weights(const CanonicalWeights& weights, int heads) {
  const auto& table = weights.table;
  VitConfig c;
  c.width = axis_of(table, "patch_embed.proj.weight", 4, 0);
  c.patch = axis_of(table, "patch_embed.proj.weight", 4, 2);
  c.depth = count_blocks(table);
  if (c.depth == 0) throw input_error("{}: expected blocks.0.norm1.weight, found no block", table.source);
  c.heads = heads > 0 ? heads : std::max(1, c.width / 64);
  if (c.width % c.heads != 0)
    throw input_error("{}: width {} cannot be split into {} heads", table.source, c.width, c.heads);
  c.swiglu = table.has("blocks.0.mlp.w1.weight");
  c.mlp_hidden = axis_of(table, c.swiglu ? "blocks.0.mlp.w1.weight" : "blocks.0.mlp.fc1.weight", 2, 0);
  c.layer_scale = table.has("blocks.0.ls1.gamma");
  c.distilled = table.has("dist_token");
  if (table.has("reg_token")) c.registers = axis_of(table, "reg_token", 3, 1);
  c.classes = table.has("head.weight") ? axis_of(table, "head.weight", 2, 0) : 0;
  c.rope = !table.has("pos_embed");
  if (!c.rope) {
    const int64_t rows = axis_of(table, "pos_embed", 3, 1), named = c.distilled ? 2 : 1;
    const auto side = rows > named ? square_side(rows - named) : 0;
    if (side == 0)
      throw input_error("{}: pos_embed: expected {} rows and a square grid, found {} rows", table.source,
                        named, rows);
    c.image_size = static_cast<int>(side) * c.patch;
  }

  const auto& source = weights.source;
  if (c.rope) {
    c.eps = 1e-5;
  } else if (source == "huggingface" && weights.family != "dinov2") {
    c.eps = 1e-12;
  }
  if (source == "torchvision") {
    c.position_rule = "align_corners";
  } else if (source == "huggingface") {
    c.position_rule = "plain";
  } else if ((source == "dino" || source == "dinov2") && c.registers == 0) {
    c.position_rule = "scale_offset";
  }
  return c;
}

void VitImpl::reset() {
  const auto& c = config;
  if (c.width % c.heads != 0)
    throw input_error("vit: width {} cannot be split into {} heads", c.width, c.heads);
  if (c.rope && c.width / c.heads % 4 != 0)
    throw input_error("vit: rotary positions need heads of a width divisible by 4, found {}",
                      c.width / c.heads);
  const auto named = c.distilled ? 2 : 1;
  const auto side = c.image_size / c.patch;
  patch_embed = register_module("patch_embed", PatchEmbed(PatchEmbedOptions{c.patch, c.width}));
  cls_token = register_parameter("cls_token", torch::zeros({1, 1, c.width}));
  if (c.distilled) dist_token = register_parameter("dist_token", torch::zeros({1, 1, c.width}));
  if (c.registers > 0) reg_token = register_parameter("reg_token", torch::zeros({1, c.registers, c.width}));
  if (c.rope)
    rope = register_module("rope", Rope(c.width / c.heads));
  else
    pos_embed = register_parameter("pos_embed", torch::zeros({1, side * side + named, c.width}));
  blocks = register_module("blocks", torch::nn::ModuleList());
  for (int i = 0; i < c.depth; ++i)
    blocks->push_back(TransformerBlock(
        TransformerBlockOptions{c.width, c.heads, c.mlp_hidden, c.eps, c.layer_scale, c.swiglu}));
  norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({c.width}).eps(c.eps)));
  if (c.classes > 0) head = register_module("head", Linear(LinearOptions{c.width, c.classes}));
  if (c.classes > 0 && c.distilled)
    head_dist = register_module("head_dist", Linear(LinearOptions{c.width, c.classes}));
}

Tensor VitImpl::positions(int64_t h, int64_t w) const {
  const int64_t named = config.distilled ? 2 : 1;
  const auto side = square_side(pos_embed.size(1) - named);
  if (h == side && w == side) return pos_embed;
  const auto grid = pos_embed.slice(1, named).transpose(1, 2).reshape({1, config.width, side, side});
  const auto moved =
      resampled_positions(grid, h, w, config.position_rule).flatten(2).transpose(1, 2);  // (1, h*w, D)
  return torch::cat({pos_embed.slice(1, 0, named), moved}, 1);
}

std::optional<RopeTable> VitImpl::rope_for(const Tensor& x) {
  if (!config.rope) return std::nullopt;
  return rope(x.size(2) / config.patch, x.size(3) / config.patch);
}

Tensor VitImpl::embed(const Tensor& x, Taps* taps) {
  check_shape(x, {-1, 3, -1, -1}, "input of the vision transformer");
  const auto B = x.size(0), h = x.size(2) / config.patch, w = x.size(3) / config.patch;
  if (h == 0 || w == 0)
    throw input_error(
        "input of the vision transformer: expected at least one patch of {} pixels, found {} x {}",
        config.patch, x.size(2), x.size(3));
  auto patches = patch_embed(x);  // (B, N, D)
  if (taps) taps->offer("patch_embed", patches);
  std::vector<Tensor> parts = {cls_token.expand({B, -1, -1})};
  if (config.distilled) parts.push_back(dist_token.expand({B, -1, -1}));
  if (!config.rope) {
    const auto table = positions(h, w);
    const auto named = static_cast<int64_t>(parts.size());
    for (int64_t i = 0; i < named; ++i) parts[i] = parts[i] + table.slice(1, i, i + 1);
    patches = patches + table.slice(1, named);
  }
  if (config.registers > 0) parts.push_back(reg_token.expand({B, -1, -1}));
  parts.push_back(patches);
  auto tokens = torch::cat(parts, 1);  // (B, T, D)
  if (taps) taps->offer("embed", tokens);
  return tokens;
}

Tensor VitImpl::run_blocks(Tensor tokens, const RopeTable* rope, Taps* taps, int64_t first_tokens) {
  for (int i = 0; i < config.depth; ++i) {
    const auto name = taps ? "block." + std::to_string(i) : std::string();
    tokens = blocks[i]->as<TransformerBlock>()->forward(tokens, rope, taps, name,
                                                        i + 1 == config.depth ? first_tokens : 0);
    if (taps && taps->wants(name + ".normalized")) taps->offer(name + ".normalized", norm(tokens));
  }
  return tokens;
}

Tensor VitImpl::tokens(const Tensor& x, Taps* taps) {
  if (taps) taps->check(tap_names(), "vision transformer");
  const auto table = rope_for(x);
  auto normalized = norm(run_blocks(embed(x, taps), table ? &*table : nullptr, taps));
  if (taps) taps->offer("norm", normalized);
  return normalized;
}

Tensor VitImpl::classify(const Tensor& tokens) {
  if (config.classes == 0) return tokens.select(1, 0);
  const auto first = head(tokens.select(1, 0));
  return config.distilled ? (first + head_dist(tokens.select(1, 1))) / 2 : first;
}

Tensor VitImpl::forward(const Tensor& x, Taps* taps) {
  if (taps) return classify(tokens(x, taps));
  const auto table = rope_for(x);
  return classify(norm(run_blocks(embed(x), table ? &*table : nullptr, nullptr, class_tokens())));
}

Tensor VitImpl::forward_tokens(const Tensor& tokens, Taps* taps) {
  if (config.rope)
    throw input_error("a vision transformer with rotary positions cannot run on a part of its tokens");
  check_shape(tokens, {-1, -1, config.width}, "tokens");
  const auto normalized = norm(run_blocks(tokens, nullptr, taps, taps ? 0 : class_tokens()));
  if (taps) taps->offer("norm", normalized);
  return classify(normalized);
}

std::vector<std::string> VitImpl::tap_names() const {
  std::vector<std::string> names = {"patch_embed", "embed"};
  for (int i = 0; i < config.depth; ++i)
    for (const char* part : {".norm1", ".value_out", ".attention", ".attention_out", "", ".normalized"})
      names.push_back(fmt::format("block.{}{}", i, part));
  names.push_back("norm");
  return names;
}

void VitImpl::initialize(uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (auto& item : named_parameters()) {
    auto& parameter = item.value();
    if (parameter.dim() < 2) continue;  // norms, biases and layer scales begin as they are
    parameter.normal_(0, 0.02, generator).clamp_(-0.04, 0.04);
  }
  patch_embed->proj->bias.zero_();
}

namespace {

// Factors (r, D) and (D, r) of the best rank-r approximation of `noise` Z + `diagonal` I, Z normal of
// variance 1 / D.
std::pair<Tensor, Tensor> factors_near_identity(int64_t width, int64_t rank, double noise, double diagonal,
                                                at::Generator& generator) {
  const Tensor wanted =
      noise / std::sqrt(static_cast<double>(width)) * torch::randn({width, width}, generator) +
      diagonal * torch::eye(width);
  const auto [u, s, v] = torch::linalg_svd(wanted, false, c10::nullopt);
  const Tensor root = s.slice(0, 0, rank).sqrt();  // (r)
  return {(u.slice(1, 0, rank) * root).t().contiguous(), v.slice(0, 0, rank).t() * root};
}

// (h * w, D): a quarter of the channels each for sine and cosine of the row and of the column, at falling
// frequencies.
Tensor wave_table(int64_t h, int64_t w, int64_t width) {
  const int64_t count = width / 4;
  const Tensor frequency =
      torch::pow(1e4, -torch::arange(count, torch::kFloat32) / static_cast<double>(count));
  const Tensor row = torch::arange(h, torch::kFloat32).unsqueeze(1) * frequency;  // (h, count)
  const Tensor column = torch::arange(w, torch::kFloat32).unsqueeze(1) * frequency;
  const auto wide = [&](const Tensor& rows, const Tensor& columns) {
    return torch::cat({rows.unsqueeze(1).expand({h, w, count}), columns.unsqueeze(0).expand({h, w, count})},
                      2);
  };
  const Tensor waves = torch::cat({wide(row.sin(), column.sin()), wide(row.cos(), column.cos())}, 2)
                           .flatten(0, 1);  // (h w, 4 count)
  return torch::constant_pad_nd(waves, {0, width - 4 * count});
}

}  // namespace

void VitImpl::initialize_mimetic(uint64_t seed) {
  initialize(seed);
  const torch::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed + 1);
  const int64_t width = config.width, rank = width / config.heads;
  for (auto& block : *blocks) {
    auto& attention = *block->as<TransformerBlock>()->attn;
    const auto rows = attention.qkv->weight.view({3, config.heads, rank, width});
    for (int head = 0; head < config.heads; ++head) {
      const auto [query, key] = factors_near_identity(width, rank, 0.7, 0.7, generator);
      rows[0][head].copy_(query);
      rows[1][head].copy_(key.t());
    }
    const auto [value, out] = factors_near_identity(width, width, 0.4, -0.4, generator);
    rows[2].copy_(out.t().reshape({config.heads, rank, width}));
    attention.proj->weight.copy_(value.t());
  }
  auto& patches = patch_embed->proj->weight;
  patches.normal_(0, 1 / std::sqrt(static_cast<double>(patches[0].numel())), generator);
  if (pos_embed.defined()) {
    const int64_t grid = config.image_size / config.patch;
    pos_embed.zero_().slice(1, pos_embed.size(1) - grid * grid).copy_(wave_table(grid, grid, width));
  }
}

void VitImpl::set_precision(std::optional<Precision> precision) {
  for (auto& block : *blocks) block->as<TransformerBlock>()->set_precision(precision);
}

nlohmann::json VitImpl::config_json() const {
  return json_from_config(config);
}

std::vector<int> default_blocks(int depth) {
  if (depth == 24) return {4, 11, 17, 23};
  if (depth == 12) return {2, 5, 8, 11};
  std::vector<int> blocks;
  for (int k = 1; k <= 4; ++k) blocks.push_back(std::max(0, depth * k / 4 - 1));
  return blocks;
}

std::vector<std::string> VitImpl::default_levels() const {
  std::vector<std::string> levels;
  for (const int block : default_blocks(config.depth)) levels.push_back(fmt::format("block.{}", block));
  return levels;
}

std::string VitImpl::size_refusal(int side) const {
  return side % config.patch == 0 ? "" : fmt::format("a multiple of {} pixels", config.patch);
}

Tensor VitImpl::patch_subset_logits(const Tensor& x, const Tensor& patches) {
  check_shape(patches, {x.size(0), -1, -1}, "patches");
  constexpr int64_t kSubsetsAtOnce = 16;
  const Tensor all = embed(x);  // (B, T, D)
  std::vector<Tensor> logits;
  for (int64_t b = 0; b < x.size(0); ++b) {
    std::vector<Tensor> rows;
    for (const Tensor& subsets : patches[b].to(all.device()).split(kSubsetsAtOnce)) {  // (S', n)
      const int64_t S = subsets.size(0);
      const Tensor prefix = all[b].slice(0, 0, prefix_tokens()).expand({S, -1, -1}),
                   chosen = all[b].slice(0, prefix_tokens()).index_select(0, subsets.flatten());
      rows.push_back(forward_tokens(torch::cat({prefix, chosen.view({S, -1, config.width})}, 1)));
    }
    logits.push_back(torch::cat(rows));
  }
  return torch::stack(logits);
}

Tensor VitImpl::head_direction(const Tensor& read, const Tensor& weights) {
  const torch::NoGradGuard no_grad;
  Tensor g = weights.matmul(head->weight).unsqueeze(0);  // (1, D)
  if (config.distilled) g = torch::cat({g, weights.matmul(head_dist->weight).unsqueeze(0)}) / 2;
  return through_norm(g * norm->weight, read.slice(0, 0, class_tokens()), config.eps);
}

Tensor VitImpl::attention_gradient(int block, const Tensor& normed, const Tensor& stream) {
  const torch::NoGradGuard no_grad;
  auto& b = *blocks[block]->as<TransformerBlock>();
  const Tensor scaled = b.ls1.is_empty() ? stream : stream * b.ls1->gamma;                   // (Q, D)
  const Tensor context = scaled.matmul(b.attn->proj->weight);                                // (Q, D)
  const Tensor values = b.attn->heads_of(normed.unsqueeze(0), nullptr)[2][0];                // (heads, T, d)
  const Tensor of_heads = context.view({stream.size(0), config.heads, -1}).transpose(0, 1);  // (heads, Q, d)
  return of_heads.matmul(values.transpose(1, 2));
}

void VitImpl::visit_attention_relevance(const Tensor& x, int64_t wanted, int first_block,
                                        const BlockVisitor& visitor) {
  const torch::AutoGradMode with_grad(true);
  const auto table = rope_for(x);
  const RopeTable* angles = table ? &*table : nullptr;
  auto stream = embed(x.detach());  // (1, T, D)
  std::vector<Tensor> inputs, attention;
  for (int i = 0; i < config.depth; ++i) {
    if (i == first_block) stream = stream.detach().requires_grad_(true);
    const auto name = fmt::format("block.{}", i);
    Taps taps({name + ".attention"});
    inputs.push_back(stream.detach());
    stream = blocks[i]->as<TransformerBlock>()->forward(stream, angles, &taps, name);
    if (i >= first_block) attention.push_back(taps.at(name + ".attention"));
  }
  const auto normed = norm(stream);
  const auto gradients = torch::autograd::grad({classify(normed)[0][wanted]}, attention);

  const torch::NoGradGuard no_grad;
  // The logit has relevance 1: all of it is the class token's, or two heads share it.
  const auto of_head = [&](Linear& linear, int64_t token, const Tensor& share) {
    return linear_relevance(linear->weight.narrow(0, wanted, 1), normed.narrow(1, token, 1), share);
  };
  auto relevance = torch::zeros_like(normed);  // (1, T, D)
  Tensor of_class = torch::ones({1, 1, 1}, normed.options());
  if (config.distilled) {
    const auto logit = [&](Linear& linear, int64_t token) {
      return linear(normed.select(1, token)).narrow(1, wanted, 1).unsqueeze(1);
    };
    const auto [first, second] = sum_relevance(logit(head, 0), logit(head_dist, 1), of_class);
    relevance.narrow(1, 1, 1).copy_(of_head(head_dist, 1, second));
    of_class = first;
  }
  relevance.narrow(1, 0, 1).copy_(of_head(head, 0, of_class));
  for (int i = config.depth; i-- > first_block;) {
    auto found = block_relevance(*blocks[i]->as<TransformerBlock>(), inputs[i], relevance, angles);
    visitor(i, found.attention[0], gradients[i - first_block][0]);
    relevance = found.tokens;
  }
}

void VitImpl::initialize_from(uint64_t seed, const std::string& start) {
  start == "mimetic" ? initialize_mimetic(seed) : Network::initialize_from(seed, start);
}

void VitImpl::load_weights(TensorTable table) {
  if (config.rope && (config.rope_formula || !table.has("rope.periods")))
    table.tensors["rope.periods"] = view_from_tensor(rope->periods);
  load_state(*this, table,
             fmt::format("vision transformer of {}", table.source.empty() ? "memory" : table.source));
  freeze(*this);
}

namespace {

// One tap as the engine has it, and the norm that follows: the final one, or the first of a block.
struct VitTap {
  FrozenVit::BlockTap at;
  bool normalized = false;
  int norm1_of = -1;  // -1 = none
};

// Of block.N, block.N.normalized, block.N.norm1 (behind block N - 1) and block.N.attention, of which the
// engine has the class token's row; nothing if it is of another kind.
std::optional<VitTap> vit_tap_from(std::string_view name) {
  const auto take = [&](std::string_view ending) {
    const bool has = name.ends_with(ending);
    if (has) name.remove_suffix(ending.size());
    return has;
  };
  VitTap tap;
  tap.at.class_attention = take(".attention");
  tap.normalized = !tap.at.class_attention && take(".normalized");
  const bool norm1 = !tap.at.class_attention && !tap.normalized && take(".norm1");
  constexpr std::string_view kBlock = "block.";
  const auto* end = name.data() + name.size();
  if (!name.starts_with(kBlock) || std::from_chars(name.data() + kBlock.size(), end, tap.at.block).ptr != end)
    return std::nullopt;
  if (norm1) tap.norm1_of = tap.at.block--;
  return tap.at.block < 0 ? std::nullopt : std::optional(tap);
}

class VitEngine : public Engine {
 public:
  VitEngine(const Vit& network, const FrozenVitWeights& weights, Precision precision)
      : norm_(network->norm),
        has_head_(network->config.classes > 0),
        has_rope_(network->config.rope),
        frozen_(weights, precision) {
    for (const auto& block : *network->blocks) norm1_.push_back(block->as<TransformerBlock>()->norm1);
  }

  Tensor logits(const Tensor& pixels) override { return frozen_.logits(pixels); }
  std::optional<PerturbedScores> perturbed_scores(const PerturbedImages& images,
                                                  bool with_gradient) override {
    return frozen_.perturbed_scores(images, with_gradient);
  }
  bool shows(const std::vector<std::string>& taps) const override {
    return std::ranges::all_of(taps, [](const auto& tap) { return vit_tap_from(tap).has_value(); });
  }
  std::vector<Tensor> taps(const Tensor& pixels, const std::vector<std::string>& names) override {
    return finished(frozen_.tapped(pixels, block_taps_of(names)), names);
  }
  bool gives_relevance() const override { return has_head_; }
  Relevance relevance(const Tensor& pixels, const Tensor& classes, const std::vector<std::string>& names,
                      TokenRelevance rule) override {
    const auto found = frozen_.relevance(pixels, classes, block_taps_of(names), rule);
    return {found.tokens, found.by_block, finished(found.tapped, names)};
  }
  bool visit_attention(const Tensor& pixels, const Tensor& classes, const AttentionVisit& visit,
                       const AttentionVisitor& visitor) override {
    if (!has_head_) return false;
    frozen_.visit_attention(pixels, classes, visit, visitor);
    return true;
  }
  std::optional<Tensor> patch_subset_logits(const Tensor& pixels, const Tensor& patches) override {
    if (!has_head_ || has_rope_) return std::nullopt;
    return frozen_.patch_subset_logits(pixels, patches);
  }
  EngineMemory memory() const override { return {frozen_.packed_bytes(), frozen_.workspace_bytes()}; }

 private:
  static std::vector<FrozenVit::BlockTap> block_taps_of(const std::vector<std::string>& names) {
    std::vector<FrozenVit::BlockTap> taps;
    for (const auto& name : names) taps.push_back(vit_tap_from(name)->at);
    return taps;
  }
  std::vector<Tensor> finished(std::vector<Tensor> values, const std::vector<std::string>& names) {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < names.size(); ++i) {
      const VitTap tap = *vit_tap_from(names[i]);
      if (tap.normalized) values[i] = norm_(values[i]);
      if (tap.norm1_of >= 0) values[i] = norm1_[tap.norm1_of](values[i]);
    }
    return values;
  }

  torch::nn::LayerNorm norm_;
  std::vector<torch::nn::LayerNorm> norm1_;
  const bool has_head_, has_rope_;
  FrozenVit frozen_;
};

}  // namespace

std::unique_ptr<Engine> VitImpl::make_engine(const InputSpec& input, Precision precision) {
  if (!engine_fits(config, input)) return nullptr;
  Vit self(std::dynamic_pointer_cast<VitImpl>(shared_from_this()));
  return std::make_unique<VitEngine>(self, frozen_weights_from(self, input), precision);
}

}  // namespace aha
