#include "aha/explainer/explainer_catalog.h"

#include <algorithm>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/time_spent.h"
#include "aha/networks/public_models.h"
#include "aha/nn/module_state.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

bool may_hold_weights(const fs::path& file) {
  const std::string ending = file.extension().string();
  return fs::is_regular_file(file) &&
         (ending == ".safetensors" || ending == ".pth" || ending == ".pt" || ending == ".bin");
}

// The spec of the model or weight file in this folder that has the encoder's sha256; empty where there is
// none.
std::string encoder_in(const fs::path& folder, const ModelCard::EncoderPart& part, bool loose_files) {
  for (const auto& model : models_in(folder.string()))
    if (model.card.sha256 == part.sha256 && model.card.kind != "explainer") return model.directory;
  if (!loose_files) return "";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (may_hold_weights(entry.path()) && sha256_of_file(entry.path().string()) == part.sha256)
      return part.architecture + ":" + entry.path().string();
  return "";
}

std::string find_encoder(const std::string& given, const std::string& directory,
                         const ModelCard::EncoderPart& part) {
  if (!given.empty()) return fs::is_regular_file(given) ? part.architecture + ":" + given : given;
  if (auto spec = encoder_in(directory, part, true); !spec.empty()) return spec;
  const auto around = fs::weakly_canonical(directory).parent_path();
  if (auto spec = encoder_in(around, part, false); !spec.empty()) return spec;
  const auto bundled = bundled_models_folder(), fetched = fetched_models_folder();
  for (const auto& folder : {bundled, fetched})
    if (auto spec = folder.empty() ? "" : encoder_in(folder, part, true); !spec.empty()) return spec;
  throw input_error(
      "{}: its encoder is a {} with sha256 {}; found no such weights beside the card, no such model beside "
      "its folder, neither in {} nor {}; expected --encoder FILE",
      directory, part.architecture, part.sha256, bundled.empty() ? "AHA_MODELS" : bundled,
      fetched.empty() ? "AHA_CACHE" : fetched);
}

std::unique_ptr<Encoder> encoder_from_network(const std::string& name, LoadedNetwork loaded,
                                              const EncoderOptions& options, const Context& context) {
  auto& [network, kind, info] = loaded;
  EncoderInfo encoder;
  encoder.name = name;
  encoder.architecture = info.architecture;
  encoder.sha256 = info.sha256;
  encoder.normalized = options.normalized;
  if (options.input_size > 0) {
    LoadOptions size;
    size.input_size = options.input_size;
    info.input = with_overrides(info.input, size);
  }
  auto levels = options.levels.empty() ? network->default_levels() : options.levels;
  return encoder_from_classifier(classifier_from_network(std::move(network), std::move(info), context),
                                 std::move(levels), std::move(encoder));
}

}  // namespace

std::unique_ptr<Encoder> load_encoder(const std::string& spec, const EncoderOptions& options,
                                      const Context& context) {
  if (spec.starts_with("script:"))
    throw input_error("{}: a TorchScript file cannot be an encoder: it cannot be looked into", spec);
  return encoder_from_network(spec, load_network(spec), options, context);
}

SameWeights weights_explained(const ModelCard& card, Classifier& target) {
  if (!card.target) return SameWeights::kNo;
  if (card.target->sha256 == target.info().sha256) return SameWeights::kYes;
  return card.target->tensors ? same_weights(*card.target->tensors, target) : SameWeights::kNo;
}

bool made_for(const ModelCard& card, Classifier& target) {
  return weights_explained(card, target) != SameWeights::kNo;
}

LoadedExplainer load_explainer(const std::string& spec, Classifier* target, const Context& context,
                               const std::string& encoder_given) {
  const auto directory = model_directory(spec);
  if (!directory) throw unknown_model_error(spec);
  LoadedExplainer loaded;
  auto& card = loaded.card = read_card(*directory);
  const auto where = (fs::path(*directory) / "model.json").string();
  if (card.kind != "explainer") throw input_error("{}: expected an explainer, found a {}", where, card.kind);
  const auto& part = *card.encoder;
  std::shared_ptr<Encoder> encoder;
  if (part.architecture == "target") {
    if (!encoder_given.empty())
      throw input_error(
          "--encoder {}: {} looks at the target's own activations and has no encoder of its own",
          encoder_given, spec);
    if (!target)
      throw input_error(
          "{}: this explainer looks at the target's own activations; give the target it was trained for",
          spec);
    if (!made_for(card, *target))
      throw input_error("{}: trained on the activations of {} (sha256 {}), found {} (sha256 {})", spec,
                        card.target->name, part.sha256.substr(0, 12), target->info().name,
                        target->info().sha256.substr(0, 12));
    encoder = encoder_from_target(*target, part.levels);
  } else {
    const int size = target ? target->info().input.size : card.input.size;
    const auto found = find_encoder(encoder_given, *directory, part);
    auto network = load_network(found);
    if (network.info.sha256 != part.sha256)
      throw input_error("{}: expected the encoder {} with sha256 {}, found {} with sha256 {}", spec,
                        part.architecture, part.sha256.substr(0, 12), found,
                        network.info.sha256.substr(0, 12));
    encoder = encoder_from_network(found, std::move(network), {part.levels, part.normalized, size}, context);
  }
  loaded.explainer = std::make_unique<Explainer>(
      encoder, config_from_json<DecoderOptions>(card.network, where + ": network"), target);
  auto& decoder = loaded.explainer->decoder();
  load_state(*decoder, read_model_weights(*directory, card), spec);
  freeze(*decoder);
  decoder->to(torch_device(context));
  decoder->set_precision(context.precision);
  return loaded;
}

std::optional<LoadedExplainer> explainer_for(const std::string& spec, Classifier& target,
                                             const Context& context, const std::string& encoder) {
  const TimeSpent time("explainer");
  if (!spec.empty()) return load_explainer(spec, &target, context, encoder);
  for (const auto& model : bundled_models()) {
    if (model.card.kind != "explainer") continue;
    const SameWeights same = weights_explained(model.card, target);
    if (same == SameWeights::kNo) continue;
    spdlog::info("explainer: {}", model.name);
    if (same == SameWeights::kRounded)
      spdlog::warn("{} holds the weights of {} rounded to 16 bits; its explainer was trained with all 32",
                   target.info().name, model.card.target->name);
    return load_explainer(model.name, &target, context, encoder);
  }
  return std::nullopt;
}

void save_explainer(const std::string& directory, Explainer& explainer, ModelCard card) {
  const auto& info = explainer.encoder().info();
  auto options = explainer.decoder()->options;
  card.kind = "explainer";
  card.architecture = "dpt";
  card.network = json_from_fields(fields(options));
  card.encoder = ModelCard::EncoderPart{info.architecture, info.sha256, info.levels, info.normalized};
  if (!card.target) throw input_error("{}: the card of an explainer must name its target", directory);
  write_model(directory, std::move(card), table_from_state(*explainer.decoder()));
}

}  // namespace aha
