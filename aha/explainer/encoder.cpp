#include "aha/explainer/encoder.h"

#include "aha/base/error.h"
#include "aha/explainer/tap_encoder.h"

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

}  // namespace

TapEncoder::TapEncoder(std::shared_ptr<Classifier> network, std::vector<std::string> levels, EncoderInfo info)
    : network_(std::move(network)) {
  info_ = std::move(info);
  info_.levels = std::move(levels);
  if (network_->tap_names().empty())
    throw input_error("encoder {}: {} cannot be looked into; give an encoder model instead", info_.name,
                      network_->info().name);
  if (network_->prefix_tokens() == 0) info_.normalized = false;
  for (const auto& level : info_.levels)
    for (const auto& tap : split_level(level)) taps_.push_back(info_.normalized ? tap + ".normalized" : tap);
  Taps(taps_).check(network_->tap_names(), network_->info().name);
}

std::vector<Tensor> TapEncoder::features(const Tensor& pixels) {
  return levels_from(network_->features(pixels, taps_));
}

Encoder::FeaturesAndTap TapEncoder::features_and_tap(const Tensor& pixels, const std::string& tap) {
  auto names = taps_;
  names.push_back(tap);
  auto maps = network_->features(pixels, names);
  const Tensor last = maps.back();
  maps.pop_back();
  return {levels_from(maps), last};
}

bool TapEncoder::gives_relevance(const Classifier& target) const {
  return looks_into(target) && network_->gives_relevance(taps_);
}

std::optional<Encoder::FeaturesAndRelevance> TapEncoder::features_and_relevance(const Tensor& pixels,
                                                                                const Tensor& classes,
                                                                                TokenRelevance rule) {
  const auto found = network_->relevance(pixels, classes, taps_, rule);
  if (!found) return std::nullopt;
  return FeaturesAndRelevance{levels_from(found->features), found->patches, found->by_block};
}

std::vector<std::vector<size_t>> TapEncoder::taps_of_levels() const {
  std::vector<std::vector<size_t>> levels;
  size_t next = 0;
  for (const auto& level : info_.levels) {
    levels.emplace_back();
    for (size_t i = split_level(level).size(); i > 0; --i) levels.back().push_back(next++);
  }
  return levels;
}

std::vector<Tensor> TapEncoder::levels_from(const std::vector<Tensor>& maps) const {
  std::vector<Tensor> levels;
  for (const auto& taps : taps_of_levels()) {
    std::vector<Tensor> parts;
    for (const size_t tap : taps) parts.push_back(maps[tap]);
    levels.push_back(parts.size() == 1 ? parts[0] : torch::cat(parts, 1));
  }
  return levels;
}

std::unique_ptr<Encoder> encoder_from_target(Classifier& target, std::vector<std::string> levels) {
  EncoderInfo info;
  info.name = info.architecture = "target";
  info.sha256 = target.info().sha256;
  // The caller owns the target.
  return encoder_from_classifier(std::shared_ptr<Classifier>(std::shared_ptr<void>(), &target),
                                 std::move(levels), std::move(info));
}

std::unique_ptr<Encoder> encoder_from_classifier(std::shared_ptr<Classifier> network,
                                                 std::vector<std::string> levels, EncoderInfo info) {
  return std::make_unique<TapEncoder>(std::move(network), std::move(levels), std::move(info));
}

}  // namespace aha
