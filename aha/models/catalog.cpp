#include "aha/models/catalog.h"

#include <algorithm>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/shipped.h"
#include "aha/models/imagenet_classes.h"
#include "aha/models/torchscript.h"
#include "aha/models/vit_encoder.h"
#include "aha/nn/state.h"
#include "aha/weights/read_weights.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

VitConfig vit_of(int width, int depth, int patch) {
  VitConfig c;
  c.width = width;
  c.depth = depth;
  c.patch = patch;
  c.heads = width / 64;
  c.mlp_hidden = 4 * width;
  return c;
}

VitConfig distilled(VitConfig c) {
  c.distilled = true;
  return c;
}

VitConfig dino_of(int width, int depth, int patch) {
  auto c = vit_of(width, depth, patch);
  c.classes = 0;
  return c;
}

VitConfig dinov2_of(int width, int depth, int registers) {
  auto c = dino_of(width, depth, 14);
  c.layer_scale = true;
  c.registers = registers;
  c.image_size = 518;
  return c;
}

VitConfig dinov3_of(int width, int depth, bool swiglu = false) {
  auto c = dino_of(width, depth, 16);
  c.layer_scale = c.rope = true;
  c.registers = 4;
  c.swiglu = swiglu;
  c.eps = 1e-5;
  return c;
}

VitConfig small_vit_of(int patch, int width, int depth, int heads) {
  VitConfig c;
  c.image_size = 32;
  c.patch = patch;
  c.width = width;
  c.depth = depth;
  c.heads = heads;
  c.mlp_hidden = 2 * width;
  c.classes = 10;
  return c;
}

ConvNextConfig convnext_of(std::vector<int> depths, int width) {
  ConvNextConfig c;
  c.depths = std::move(depths);
  c.widths = {width, 2 * width, 4 * width, 8 * width};
  return c;
}

ConvNextConfig small_convnext_of(std::vector<int> depths, std::vector<int> widths, int stem_stride) {
  ConvNextConfig c;
  c.image_size = 32;
  c.stem_stride = stem_stride;
  c.depths = std::move(depths);
  c.widths = std::move(widths);
  c.classes = 10;
  return c;
}

// One row: weights whose architecture begins with `prefix`, from `source` (empty = any), at `size` (0 = any)
// are evaluated so. First fit wins.
struct InputRecipe {
  std::string_view prefix, source;
  int size;
  ResizeRule rule;
  int resize;  // 0 = the size itself
  Filter filter;
  bool crop;
  bool half;  // mean = std = 0.5 instead of ImageNet's
};

constexpr auto kShort = ResizeRule::kShortSide, kStretch = ResizeRule::kStretch;
constexpr auto kBilinear = Filter::kBilinear, kBicubic = Filter::kBicubic;

constexpr InputRecipe kRecipes[] = {
    {"vit_mini", "", 0, kStretch, 0, kBilinear, false, false},
    {"vit_l_16", "torchvision", 224, kShort, 242, kBilinear, true, false},
    {"vit_", "torchvision", 224, kShort, 256, kBilinear, true, false},
    {"vit_", "torchvision", 0, kShort, 0, kBicubic, true, false},  // SWAG, end to end
    {"vit_", "huggingface", 0, kStretch, 0, kBilinear, false, true},
    {"vit_", "", 224, kShort, 248, kBicubic, true, true},
    {"vit_", "", 0, kShort, 0, kBicubic, true, true},
    {"deit_", "huggingface", 224, kShort, 256, kBicubic, true, false},
    {"deit_", "", 224, kShort, 248, kBicubic, true, false},
    {"deit_", "", 0, kShort, 0, kBicubic, true, false},
    {"convnext_mini", "", 0, kStretch, 0, kBilinear, false, false},
    {"convnext_tiny", "torchvision", 224, kShort, 236, kBilinear, true, false},
    {"convnext_small", "torchvision", 224, kShort, 230, kBilinear, true, false},
    {"convnext_base", "torchvision", 224, kShort, 232, kBilinear, true, false},
    {"convnext_", "", 224, kShort, 256, kBicubic, true, false},
    {"convnext_", "", 0, kStretch, 0, kBicubic, false, false},
    {"dinov3_", "", 0, kStretch, 0, kBilinear, false, false},
    {"dino", "", 224, kShort, 256, kBicubic, true, false},
    {"", "", 0, kShort, 0, kBicubic, true, false},
};

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const auto& architecture : architectures()) names.push_back(architecture.name);
  return names;
}

// What differs between a known network and the weights at hand, in words; empty where they fit.
std::string difference(const VitConfig& known, const VitConfig& found) {
  std::string text;
  const auto compare = [&](const char* what, int expected, int present) {
    if (expected != present)
      text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", what, present, expected);
  };
  compare("width", known.width, found.width);
  compare("depth", known.depth, found.depth);
  compare("patch", known.patch, found.patch);
  compare("MLP width", known.mlp_hidden, found.mlp_hidden);
  compare("registers", known.registers, found.registers);
  compare("distillation token", known.distilled, found.distilled);
  compare("layer scale", known.layer_scale, found.layer_scale);
  compare("rotary positions", known.rope, found.rope);
  compare("SwiGLU", known.swiglu, found.swiglu);
  return text;
}

std::string difference(const ConvNextConfig& known, const ConvNextConfig& found) {
  if (known.depths != found.depths)
    return fmt::format("depths {} instead of {}", fmt::join(found.depths, ","), fmt::join(known.depths, ","));
  if (known.widths != found.widths)
    return fmt::format("widths {} instead of {}", fmt::join(found.widths, ","), fmt::join(known.widths, ","));
  if (known.stem_stride != found.stem_stride)
    return fmt::format("stem stride {} instead of {}", found.stem_stride, known.stem_stride);
  return "";
}

bool is_convnext(const CanonicalWeights& weights) {
  return weights.family == "convnext";
}

// The configuration of these weights as a member of `architecture`, or in `why` what speaks against it.
std::variant<VitConfig, ConvNextConfig> config_as(const Architecture& architecture,
                                                  const CanonicalWeights& weights, std::string& why) {
  if (const auto* known = std::get_if<VitConfig>(&architecture.config)) {
    if (is_convnext(weights)) {
      why = "it holds a ConvNeXt";
      return *known;
    }
    // Heads cannot be seen in the shapes: the name says them, as long as they divide the width that was
    // found.
    const auto& patch = weights.table.at("patch_embed.proj.weight");
    const bool same_width = !patch.shape.empty() && patch.shape[0] == known->width;
    auto found = vit_config_from_weights(weights, same_width ? known->heads : 1);
    if (found.rope) found.image_size = known->image_size;
    why = difference(*known, found);
    if (why.empty() && architecture.kind == "classifier" && found.classes == 0)
      why = "it holds an encoder without a head";
    return found;
  }
  const auto& known = std::get<ConvNextConfig>(architecture.config);
  if (!is_convnext(weights)) {
    why = "it holds a vision transformer";
    return known;
  }
  auto found = convnext_config_from_weights(weights);
  found.image_size = known.image_size;
  why = difference(known, found);
  return found;
}

struct Resolved {
  std::string name, architecture, kind, sha256;
  CanonicalWeights weights;
  std::variant<VitConfig, ConvNextConfig> config;
  InputSpec input;
  std::vector<std::string> classes;
};

Resolved resolve_public(const Architecture& architecture, const std::string& file) {
  Resolved r;
  r.name = architecture.name + ":" + file;
  r.architecture = architecture.name;
  r.kind = architecture.kind;
  r.weights = canonical_from_any(read_weights(file));
  std::string why;
  r.config = config_as(architecture, r.weights, why);
  if (!why.empty()) {
    const auto* fitting = fitting_architecture(r.weights);
    throw input_error("{} does not fit {}: {}{}", file, architecture.name, why,
                      fitting ? "; it fits " + fitting->name : "");
  }
  r.sha256 = sha256_of_file(file);
  const int image_size = std::visit([](const auto& config) { return config.image_size; }, r.config);
  // A DINOv2 table was made at 518 pixels, but the network is used at 224.
  r.input = default_input(architecture, r.weights.source, r.kind == "encoder" ? 224 : image_size);
  if (std::visit([](const auto& config) { return config.classes; }, r.config) == 1000)
    r.classes = imagenet_class_names();
  return r;
}

template <class Config>
Config config_from_card(const ModelCard& card, const std::string& where) {
  Config config;
  set_all_from_json(fields(config), card.network, where + ": network");
  return config;
}

Resolved resolve_directory(const std::string& name, const std::string& directory) {
  const auto card = read_card(directory);
  const auto where = (fs::path(directory) / "model.json").string();
  if (card.kind == "explainer")
    throw input_error("{}: expected a classifier or an encoder, found an explainer", where);
  Resolved r;
  r.name = name;
  r.architecture = card.architecture;
  r.kind = card.kind;
  r.sha256 = card.sha256;
  r.weights.table = read_model_weights(directory, card);
  r.weights.source = "aha";
  r.weights.family = card.architecture;
  if (card.architecture == "vit")
    r.config = config_from_card<VitConfig>(card, where);
  else if (card.architecture == "convnext")
    r.config = config_from_card<ConvNextConfig>(card, where);
  else
    throw unknown_name_error(where + ": architecture", card.architecture,
                             std::vector<std::string>{"vit", "convnext"});
  r.input = card.input;
  r.classes = card.classes;
  const int classes = std::visit([](const auto& config) { return config.classes; }, r.config);
  if (!r.classes.empty() && static_cast<int>(r.classes.size()) != classes)
    throw input_error("{}: expected {} class names, found {}", where, classes, r.classes.size());
  return r;
}

// The directory that a NAME or a path means, or nothing.
std::optional<std::string> model_directory(const std::string& spec) {
  if (fs::is_regular_file(fs::path(spec) / "model.json")) return spec;
  const auto folder = bundled_models_folder();
  const bool plain_name = !spec.empty() && spec.find('/') == std::string::npos && spec != "." && spec != "..";
  if (plain_name && !folder.empty() && fs::is_regular_file(fs::path(folder) / spec / "model.json"))
    return (fs::path(folder) / spec).string();
  return std::nullopt;
}

Error unknown_model_error(const std::string& spec) {
  if (fs::is_regular_file(spec))
    return input_error(
        "{}: a weight file needs its architecture in front, as in vit_b_16:{}; `aha inspect` says which fits",
        spec, spec);
  if (fs::is_directory(spec))
    return input_error("{}: expected a model directory, found no model.json in it", spec);
  std::vector<std::string> available;
  for (const auto& model : bundled_models()) available.push_back(model.name);
  for (const char* form : {"a model directory", "ARCHITECTURE:FILE", "script:FILE.pt"})
    available.emplace_back(form);
  return unknown_name_error("model", spec, available);
}

Resolved resolve(const std::string& spec) {
  if (const auto directory = model_directory(spec)) return resolve_directory(spec, *directory);
  const auto colon = spec.find(':');
  if (colon == std::string::npos) throw unknown_model_error(spec);
  return resolve_public(architecture_named(spec.substr(0, colon)), spec.substr(colon + 1));
}

std::vector<int> blocks_from_levels(const std::vector<std::string>& levels) {
  std::vector<int> blocks;
  for (const auto& level : levels) {
    int block = -1, used = 0;
    if (std::sscanf(level.c_str(), "block.%d%n", &block, &used) != 1 ||
        used != static_cast<int>(level.size()))
      throw input_error("encoder level: expected block.NUMBER, found '{}'", printable(level));
    blocks.push_back(block);
  }
  return blocks;
}

std::vector<std::string> default_stages(const ConvNextConfig& config) {
  std::vector<std::string> levels;
  for (size_t s = 0; s < config.depths.size(); ++s) levels.push_back(fmt::format("stage.{}", s));
  return levels;
}

std::unique_ptr<Classifier> classifier_from(Resolved r, const LoadOptions& options, const Context& context) {
  ClassifierInfo info;
  info.name = r.name;
  info.architecture = r.architecture;
  info.class_names = r.classes;
  info.input = with_wishes(r.input, options);
  info.sha256 = r.sha256;
  if (const auto* config = std::get_if<VitConfig>(&r.config)) {
    if (info.input.size % config->patch != 0)
      throw input_error("{}: expected an input size that is a multiple of {} pixels, found {}", info.name,
                        config->patch, info.input.size);
    return classifier_from_network(vit_from_weights(r.weights, *config), std::move(info), context);
  }
  return classifier_from_network(convnext_from_weights(r.weights, std::get<ConvNextConfig>(r.config)),
                                 std::move(info), context);
}

template <class Network>
void save_network(const std::string& directory, const char* architecture, Network& network, ModelCard card) {
  if (card.kind.empty()) card.kind = "classifier";
  card.architecture = architecture;
  auto config = network->config;
  card.network = json_from_fields(fields(config));
  write_model(directory, std::move(card), table_from_state(*network));
}

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> list = {
      {"vit_ti_16", "classifier", "ViT-Tiny, patch 16, 5.7 M parameters", vit_of(192, 12, 16)},
      {"vit_ti_32", "classifier", "ViT-Tiny, patch 32, 6.1 M parameters", vit_of(192, 12, 32)},
      {"vit_s_16", "classifier", "ViT-Small, patch 16, 22 M parameters", vit_of(384, 12, 16)},
      {"vit_s_32", "classifier", "ViT-Small, patch 32, 23 M parameters", vit_of(384, 12, 32)},
      {"vit_b_16", "classifier", "ViT-Base, patch 16, 87 M parameters", vit_of(768, 12, 16)},
      {"vit_b_32", "classifier", "ViT-Base, patch 32, 88 M parameters", vit_of(768, 12, 32)},
      {"vit_l_16", "classifier", "ViT-Large, patch 16, 304 M parameters", vit_of(1024, 24, 16)},
      {"vit_l_32", "classifier", "ViT-Large, patch 32, 307 M parameters", vit_of(1024, 24, 32)},
      {"deit_ti_16", "classifier", "DeiT-Tiny: the network of vit_ti_16, other preprocessing",
       vit_of(192, 12, 16)},
      {"deit_s_16", "classifier", "DeiT-Small: the network of vit_s_16, other preprocessing",
       vit_of(384, 12, 16)},
      {"deit_b_16", "classifier", "DeiT-Base: the network of vit_b_16, other preprocessing",
       vit_of(768, 12, 16)},
      {"deit_ti_16_distilled", "classifier", "distilled DeiT-Tiny", distilled(vit_of(192, 12, 16))},
      {"deit_s_16_distilled", "classifier", "distilled DeiT-Small", distilled(vit_of(384, 12, 16))},
      {"deit_b_16_distilled", "classifier", "distilled DeiT-Base", distilled(vit_of(768, 12, 16))},
      {"convnext_tiny", "classifier", "ConvNeXt-Tiny, 29 M parameters", convnext_of({3, 3, 9, 3}, 96)},
      {"convnext_small", "classifier", "ConvNeXt-Small, 50 M parameters", convnext_of({3, 3, 27, 3}, 96)},
      {"convnext_base", "classifier", "ConvNeXt-Base, 89 M parameters", convnext_of({3, 3, 27, 3}, 128)},
      {"vit_mini_4", "classifier", "small ViT for 32x32 pictures, patch 4", small_vit_of(4, 128, 6, 4)},
      {"vit_mini_8", "classifier", "small ViT for 32x32 pictures, patch 8", small_vit_of(8, 128, 6, 4)},
      {"convnext_mini", "classifier", "small ConvNeXt for 32x32 pictures, stem of stride 2",
       small_convnext_of({2, 2, 2}, {48, 96, 192}, 2)},
      {"dino_vits16", "encoder", "DINO v1, ViT-Small, patch 16", dino_of(384, 12, 16)},
      {"dino_vitb16", "encoder", "DINO v1, ViT-Base, patch 16", dino_of(768, 12, 16)},
      {"dinov2_vits14", "encoder", "DINOv2, ViT-Small, patch 14", dinov2_of(384, 12, 0)},
      {"dinov2_vitb14", "encoder", "DINOv2, ViT-Base, patch 14", dinov2_of(768, 12, 0)},
      {"dinov2_vitl14", "encoder", "DINOv2, ViT-Large, patch 14", dinov2_of(1024, 24, 0)},
      {"dinov2_vits14_reg", "encoder", "DINOv2 with registers, ViT-Small, patch 14", dinov2_of(384, 12, 4)},
      {"dinov2_vitb14_reg", "encoder", "DINOv2 with registers, ViT-Base, patch 14", dinov2_of(768, 12, 4)},
      {"dinov2_vitl14_reg", "encoder", "DINOv2 with registers, ViT-Large, patch 14", dinov2_of(1024, 24, 4)},
      {"dinov3_vits16", "encoder", "DINOv3, ViT-Small, patch 16", dinov3_of(384, 12)},
      {"dinov3_vits16plus", "encoder", "DINOv3, ViT-Small with SwiGLU, patch 16", dinov3_of(384, 12, true)},
      {"dinov3_vitb16", "encoder", "DINOv3, ViT-Base, patch 16", dinov3_of(768, 12)},
      {"dinov3_vitl16", "encoder", "DINOv3, ViT-Large, patch 16: the paper's encoder", dinov3_of(1024, 24)},
  };
  return list;
}

const Architecture& architecture_named(const std::string& name) {
  for (const auto& architecture : architectures())
    if (architecture.name == name) return architecture;
  throw unknown_name_error("architecture", name, architecture_names());
}

const Architecture* fitting_architecture(const CanonicalWeights& weights) {
  for (const auto& architecture : architectures()) {
    std::string why;
    const auto config = config_as(architecture, weights, why);
    const bool has_head = std::visit([](const auto& c) { return c.classes > 0; }, config);
    if (why.empty() && has_head == (architecture.kind == "classifier")) return &architecture;
  }
  return nullptr;
}

InputSpec default_input(const Architecture& architecture, const std::string& source, int image_size) {
  for (const auto& recipe : kRecipes) {
    const bool fits = std::string_view(architecture.name).starts_with(recipe.prefix) &&
                      (recipe.source.empty() || recipe.source == source) &&
                      (recipe.size == 0 || recipe.size == image_size);
    if (!fits) continue;
    InputSpec input;
    input.size = image_size;
    input.rule = recipe.rule;
    input.resize = recipe.resize == 0 ? image_size : recipe.resize;
    input.filter = recipe.filter;
    input.crop = recipe.crop;
    if (recipe.half) input.mean = input.std = {0.5, 0.5, 0.5};
    return input;
  }
  return {};
}

std::string bundled_models_folder() {
  return find_shipped({"AHA_MODELS", "models", "models", "cifar10-convnext/model.json"});
}

std::vector<BundledModel> bundled_models() {
  std::vector<BundledModel> models;
  const auto folder = bundled_models_folder();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!fs::is_regular_file(entry.path() / "model.json")) continue;
    try {
      models.push_back(
          {entry.path().filename().string(), entry.path().string(), read_card(entry.path().string())});
    } catch (const Error& broken) {
      spdlog::warn("{}", broken.what());
    }
  }
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return models;
}

std::unique_ptr<Classifier> classifier_from_network(Vit network, ClassifierInfo info,
                                                    const Context& context) {
  network->to(torch_device(context));
  return std::make_unique<VitClassifier>(network, std::move(info), context.precision);
}
std::unique_ptr<Classifier> classifier_from_network(ConvNext network, ClassifierInfo info,
                                                    const Context& context) {
  network->to(torch_device(context));
  return std::make_unique<ConvNextClassifier>(network, std::move(info), context.precision);
}

std::unique_ptr<Classifier> load_classifier(const std::string& spec, const LoadOptions& options,
                                            const Context& context) {
  if (spec.starts_with("script:")) return load_script_classifier(spec.substr(7), options, context);
  auto resolved = resolve(spec);
  if (resolved.kind != "classifier") throw input_error("{}: expected a classifier, found an encoder", spec);
  return classifier_from(std::move(resolved), options, context);
}

std::unique_ptr<Encoder> load_encoder(const std::string& spec, const EncoderOptions& options,
                                      const Context& context) {
  if (spec.starts_with("script:"))
    throw input_error("{}: a TorchScript file cannot be an encoder: it cannot be looked into", spec);
  auto resolved = resolve(spec);
  EncoderInfo info;
  info.name = spec;
  info.sha256 = resolved.sha256;
  info.normed = options.normed;
  info.mean = resolved.input.mean;
  info.std = resolved.input.std;
  if (const auto* config = std::get_if<VitConfig>(&resolved.config)) {
    auto network = vit_from_weights(resolved.weights, *config);
    network->to(torch_device(context));
    return encoder_from_vit(network, std::move(info), blocks_from_levels(options.levels), context.precision);
  }
  auto levels =
      options.levels.empty() ? default_stages(std::get<ConvNextConfig>(resolved.config)) : options.levels;
  std::shared_ptr<Classifier> network = classifier_from(std::move(resolved), {}, context);
  info.normed = false;
  return encoder_from_classifier(std::move(network), std::move(levels), std::move(info));
}

LoadedExplainer load_explainer(const std::string& spec, Classifier* target, const Context& context) {
  const auto directory = model_directory(spec);
  if (!directory) throw unknown_model_error(spec);
  LoadedExplainer loaded;
  auto& card = loaded.card = read_card(*directory);
  const auto where = (fs::path(*directory) / "model.json").string();
  if (card.kind != "explainer") throw input_error("{}: expected an explainer, found a {}", where, card.kind);
  const auto& part = *card.encoder;
  std::shared_ptr<Encoder> encoder;
  if (part.model == "target") {
    if (!target)
      throw input_error(
          "{}: this explainer looks at the target's own activations; give the target it was trained for",
          spec);
    if (target->info().sha256 != part.sha256)
      throw input_error("{}: trained on the activations of {} (sha256 {}), found {} (sha256 {})", spec,
                        card.target->name, part.sha256.substr(0, 12), target->info().name,
                        target->info().sha256.substr(0, 12));
    encoder = encoder_from_target(*target, part.levels);
  } else {
    encoder = load_encoder(part.model, {part.levels, part.normed}, context);
    if (encoder->info().sha256 != part.sha256)
      throw input_error("{}: expected the encoder {} with sha256 {}, found {}", spec, part.model,
                        part.sha256.substr(0, 12), encoder->info().sha256.substr(0, 12));
  }
  loaded.explainer = std::make_unique<Explainer>(encoder, config_from_card<DecoderOptions>(card, where), target);
  auto& decoder = loaded.explainer->decoder();
  load_state(*decoder, read_model_weights(*directory, card), spec);
  freeze(*decoder);
  decoder->to(torch_device(context));
  decoder->set_precision(context.precision);
  return loaded;
}

void save_explainer(const std::string& directory, Explainer& explainer, ModelCard card) {
  const auto& info = explainer.encoder().info();
  auto options = explainer.decoder()->options;
  card.kind = "explainer";
  card.architecture = "dpt";
  card.network = json_from_fields(fields(options));
  card.encoder = ModelCard::EncoderPart{info.name, info.sha256, info.levels, info.normed};
  if (!card.target) throw input_error("{}: the card of an explainer must name its target", directory);
  write_model(directory, std::move(card), table_from_state(*explainer.decoder()));
}

void save_classifier(const std::string& directory, Vit& network, ModelCard card) {
  save_network(directory, "vit", network, std::move(card));
}
void save_classifier(const std::string& directory, ConvNext& network, ModelCard card) {
  save_network(directory, "convnext", network, std::move(card));
}

}  // namespace aha
