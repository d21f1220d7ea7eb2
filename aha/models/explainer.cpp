#include "aha/models/explainer.h"

#include <charconv>
#include <cmath>

#include "aha/base/error.h"
#include "aha/models/convnext_engine.h"
#include "aha/models/prior.h"
#include "aha/models/vit_encoder.h"
#include "aha/models/vit_engine.h"

namespace aha {
namespace {

std::vector<std::string> split_level(const std::string& level) {
  std::vector<std::string> taps;
  size_t begin = 0;
  for (size_t end; (end = level.find('+', begin)) != std::string::npos; begin = end + 1)
    taps.push_back(level.substr(begin, end - begin));
  taps.push_back(level.substr(begin));
  return taps;
}

// (B, N, C) -> (B, C, g, g)
Tensor map_from_tokens(const Tensor& tokens, const std::string& name) {
  const auto N = tokens.size(1);
  const auto side = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(N))));
  if (side * side != N) throw input_error("tap {}: expected a square grid of patches, found {}", name, N);
  return tokens.transpose(1, 2).unflatten(2, {side, side});
}

Tensor map_from_tap(const Tensor& tap, const std::string& name, int prefix) {
  if (name.ends_with(".attention")) {
    const auto T = tap.size(3);
    return map_from_tokens(tap.select(2, 0).slice(2, prefix).transpose(1, 2) * static_cast<double>(T), name);
  }
  if (tap.dim() == 4) return tap;
  return map_from_tokens(name == "patch_embed" ? tap : tap.slice(1, prefix), name);
}

// N of PREFIX.N ("block.3", "stage.1"); nothing if the tap is of another kind.
std::optional<int> number_of(std::string_view tap, std::string_view prefix) {
  int number = 0;
  const auto* end = tap.data() + tap.size();
  if (!tap.starts_with(prefix) || std::from_chars(tap.data() + prefix.size(), end, number).ptr != end)
    return std::nullopt;
  return number;
}

// What the fast transformer shows of itself: block.N and block.N.attention, of which only the class token's
// row is used. Nothing if a tap is of another kind.
std::optional<std::vector<FrozenVit::Look>> looks_of(const std::vector<std::string>& taps) {
  constexpr std::string_view kAttention = ".attention";
  std::vector<FrozenVit::Look> looks;
  for (std::string_view tap : taps) {
    const bool attention = tap.ends_with(kAttention);
    if (attention) tap.remove_suffix(kAttention.size());
    const auto block = number_of(tap, "block.");
    if (!block) return std::nullopt;
    looks.push_back({*block, attention});
  }
  return looks;
}

std::optional<std::vector<int>> stages_of(const std::vector<std::string>& taps) {
  std::vector<int> stages;
  for (const auto& tap : taps) {
    const auto stage = number_of(tap, "stage.");
    if (!stage) return std::nullopt;
    stages.push_back(*stage);
  }
  return stages;
}

// Libtorch's products and convolutions differ in their last bits with the number of images; the fast engines
// do not. Each image by itself, so that its features are the same in any batch.
template <class Of>
std::vector<Tensor> each_alone(const Tensor& pixels, const Of& of) {
  std::vector<std::vector<Tensor>> levels;
  for (int64_t b = 0; b < pixels.size(0); ++b) {
    const auto maps = of(pixels.narrow(0, b, 1));
    levels.resize(maps.size());
    for (size_t k = 0; k < maps.size(); ++k) levels[k].push_back(maps[k]);
  }
  std::vector<Tensor> joined;
  for (const auto& level : levels) joined.push_back(torch::cat(level));
  return joined;
}

bool several_on_cpu(const Tensor& pixels) {
  return pixels.is_cpu() && pixels.size(0) > 1;
}

class TapEncoder : public Encoder {
 public:
  TapEncoder(std::shared_ptr<Classifier> network, std::vector<std::string> levels, EncoderInfo info)
      : network_(std::move(network)) {
    info_ = std::move(info);
    info_.levels = std::move(levels);
    for (const auto& level : info_.levels)
      for (auto& tap : split_level(level)) wanted_.push_back(std::move(tap));
    if (network_->tap_names().empty())
      throw input_error("encoder {}: {} cannot be looked into; give an encoder model instead", info_.name,
                        network_->info().name);
    Taps(wanted_).check(network_->tap_names(), network_->info().name);
    looks_ = looks_of(wanted_);
    stages_ = stages_of(wanted_);
  }

  std::vector<Tensor> features(const Tensor& pixels) override {
    const torch::NoGradGuard no_grad;
    const auto found = fast_taps(pixels);
    if (found.empty() && several_on_cpu(pixels))
      return each_alone(pixels, [this](const Tensor& one) { return features(one); });
    Taps taps(wanted_);
    if (found.empty()) network_->logits(pixels, &taps);
    return levels_from(taps, found);
  }

  bool gives_chefer(const Classifier& target) const override {
    return network_.get() == &target && looks_ && dynamic_cast<FrozenVit*>(network_->engine());
  }

  std::optional<FeaturesAndChefer> features_and_chefer(const Tensor& pixels, const Tensor& classes) override {
    auto* vit = dynamic_cast<FrozenVit*>(network_->engine());
    if (!vit || !looks_ || !on_engine(pixels)) return std::nullopt;
    const auto found = vit->relevance(pixels, classes, *looks_);
    Taps taps(wanted_);
    return FeaturesAndChefer{levels_from(taps, found.seen), found.tokens.slice(1, network_->prefix_tokens())};
  }

 private:
  // `found`: what is wanted, in this order, unless the taps have it already.
  std::vector<Tensor> levels_from(Taps& taps, const std::vector<Tensor>& found) const {
    for (size_t i = 0; i < found.size(); ++i) taps.offer(wanted_[i], found[i]);
    std::vector<Tensor> maps;
    for (const auto& level : info_.levels) {
      std::vector<Tensor> parts;
      for (const auto& name : split_level(level))
        parts.push_back(map_from_tap(taps.at(name), name, network_->prefix_tokens()));
      maps.push_back(parts.size() == 1 ? parts[0] : torch::cat(parts, 1));
    }
    return maps;
  }

  bool on_engine(const Tensor& pixels) const {
    const int64_t size = network_->info().input.size;
    return pixels.is_cpu() && pixels.size(2) == size && pixels.size(3) == size;
  }

  // From the fast engine where there is one and it shows all that is wanted; else empty. ViT-Ti/16, two
  // threads, ms per image of 8 and alone: tokens and all attention rows 11.5 and 19.7, tokens alone 10.1
  // and 19.1; through libtorch, image by image, 38.9 and 27.6.
  std::vector<Tensor> fast_taps(const Tensor& pixels) {
    if (!on_engine(pixels)) return {};
    if (looks_)
      if (auto* vit = dynamic_cast<FrozenVit*>(network_->engine())) return vit->seen(pixels, *looks_);
    if (stages_)
      if (auto* convnext = dynamic_cast<FrozenConvNext*>(network_->engine()))
        return convnext->features_after(pixels, *stages_);
    return {};
  }

  std::shared_ptr<Classifier> network_;
  std::vector<std::string> wanted_;
  std::optional<std::vector<FrozenVit::Look>> looks_;
  std::optional<std::vector<int>> stages_;
};

class VitEncoder : public Encoder {
 public:
  VitEncoder(Vit network, EncoderInfo info, std::vector<int> blocks,
             std::optional<Precision> engine_precision)
      : network_(std::move(network)), blocks_(std::move(blocks)), engine_precision_(engine_precision) {
    info_ = std::move(info);
    for (const int block : blocks_)
      if (block < 0 || block >= network_->config.depth)
        throw input_error("encoder {}: expected blocks in 0..{}, found {}", info_.name,
                          network_->config.depth - 1, block);
    for (const int block : blocks_) info_.levels.push_back(fmt::format("block.{}", block));
    input_.mean = info_.mean;
    input_.std = info_.std;
  }

  std::vector<Tensor> features(const Tensor& pixels) override {
    const torch::NoGradGuard no_grad;
    FrozenVit* engine = engine_for(pixels);
    if (!engine && several_on_cpu(pixels))
      return each_alone(pixels, [this](const Tensor& one) { return features(one); });
    if (!engine) return network_->intermediate(normalized(pixels, input_), blocks_, info_.normalized);
    std::vector<Tensor> maps;
    const std::vector<FrozenVit::Look> looks(blocks_.begin(), blocks_.end());
    for (const Tensor& tokens : engine->seen(pixels, looks)) {
      const Tensor patches = tokens.slice(1, network_->prefix_tokens());  // (B, N, D)
      maps.push_back(map_from_tokens(info_.normalized ? network_->norm(patches) : patches, info_.name));
    }
    return maps;
  }

 private:
  FrozenVit* engine_for(const Tensor& pixels) {
    const int64_t size = pixels.size(2);
    if (!engine_precision_ || !pixels.is_cpu() || pixels.size(3) != size || (engine_ && input_.size != size))
      return nullptr;
    if (engine_) return engine_.get();
    input_.size = static_cast<int>(size);
    if (!engine_fits(network_->config, input_)) return nullptr;
    FrozenVitWeights weights = frozen_weights_from(network_, input_);
    weights.head_weight.clear();  // only tokens will be asked for
    weights.head_bias.clear();
    engine_ = std::make_unique<FrozenVit>(weights, *engine_precision_);
    return engine_.get();
  }

  Vit network_;
  std::vector<int> blocks_;
  std::optional<Precision> engine_precision_;
  InputSpec input_;  // its size is the engine's
  std::unique_ptr<FrozenVit> engine_;
};

}  // namespace

std::unique_ptr<Encoder> encoder_from_target(Classifier& target, std::vector<std::string> levels) {
  EncoderInfo info;
  info.name = "target";
  info.sha256 = target.info().sha256;
  info.mean = target.info().input.mean;
  info.std = target.info().input.std;
  // The caller owns the target.
  return encoder_from_classifier(std::shared_ptr<Classifier>(std::shared_ptr<void>(), &target),
                                 std::move(levels), std::move(info));
}

std::unique_ptr<Encoder> encoder_from_classifier(std::shared_ptr<Classifier> network,
                                                 std::vector<std::string> levels, EncoderInfo info) {
  return std::make_unique<TapEncoder>(std::move(network), std::move(levels), std::move(info));
}

std::unique_ptr<Encoder> encoder_from_vit(Vit network, EncoderInfo info, std::vector<int> blocks,
                                          std::optional<Precision> engine_precision) {
  if (blocks.empty()) blocks = default_blocks(network->config.depth);
  return std::make_unique<VitEncoder>(std::move(network), std::move(info), std::move(blocks),
                                      engine_precision);
}

std::vector<int> default_blocks(int depth) {
  if (depth == 24) return {4, 11, 17, 23};
  if (depth == 12) return {2, 5, 8, 11};
  std::vector<int> blocks;
  for (int k = 1; k <= 4; ++k) blocks.push_back(std::max(0, depth * k / 4 - 1));
  return blocks;
}

std::vector<int> widths_of(Encoder& encoder, int image_size) {
  std::vector<int> widths;
  for (const auto& map : encoder.features(torch::zeros({1, 3, image_size, image_size})))
    widths.push_back(static_cast<int>(map.size(1)));
  return widths;
}

Explainer::Explainer(std::shared_ptr<Encoder> encoder, DecoderOptions options, Classifier* target)
    : encoder_(std::move(encoder)), target_(target), decoder_(std::move(options)) {
  if (encoder_->info().levels.size() != decoder_->options.widths.size())
    throw input_error("explainer: the encoder gives {} levels, the decoder expects {}",
                      encoder_->info().levels.size(), decoder_->options.widths.size());
  add_prior(decoder_->options.prior, decoder_->options.prior_weight);
}

void Explainer::add_prior(const std::string& name, double weight) {
  if (name != "none" && !target_)
    throw input_error("explainer: its prior ({}) is a map of the target; give the target it was trained for",
                      name);
  if (target_) check_prior(name, *target_);
  decoder_->options.prior = name;
  decoder_->options.prior_weight = weight;
}

Features Explainer::features(const Tensor& pixels, const Tensor& classes) {
  check_shape(pixels, {-1, 3, -1, -1}, "pixels of the explainer");
  const int64_t H = pixels.size(2), W = pixels.size(3);
  const auto& prior = decoder_->options.prior;
  if (shares_forward())
    if (const auto both = encoder_->features_and_chefer(pixels, classes))
      return {both->levels, H, W, map_of_order(both->values, H, W)};
  return {encoder_->features(pixels), H, W,
          prior == "none" ? Tensor() : prior_map(prior, *target_, pixels, classes)};
}

bool Explainer::shares_forward() const {
  return decoder_->options.prior == "chefer" && encoder_->gives_chefer(*target_);
}

std::shared_ptr<DecoderImpl> Explainer::decoder_copy() {
  std::shared_ptr<DecoderImpl> copy;
  {
    const std::lock_guard lock(spares_->guard);
    if (!spares_->list.empty()) {
      copy = std::move(spares_->list.back());
      spares_->list.pop_back();
    }
  }
  if (copy && copy->top->weight.device() == decoder_->top->weight.device())
    copy->become(*decoder_);
  else
    copy = std::dynamic_pointer_cast<DecoderImpl>(decoder_->clone());
  copy->eval();
  return {copy.get(), [copy, spares = spares_](DecoderImpl*) {
            for (auto& parameter : copy->parameters()) parameter.mutable_grad() = Tensor();
            const std::lock_guard lock(spares->guard);
            spares->list.push_back(copy);
          }};
}

Tensor Explainer::decode(const Features& features, const Tensor& classes) {
  check_shape(classes, {features.levels.at(0).size(0)}, "classes of the explainer");
  return decoder_->forward(features.levels, classes, features.height, features.width, features.prior);
}

}  // namespace aha
