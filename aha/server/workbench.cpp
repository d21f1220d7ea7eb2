#include "aha/server/workbench.h"

#include <algorithm>
#include <set>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/npy.h"
#include "aha/image/png.h"
#include "aha/image/read.h"
#include "aha/methods/catalog.h"
#include "aha/methods/fitting.h"
#include "aha/metrics/score_queue.h"
#include "aha/networks/bf16_copy.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

constexpr size_t kIdLength = 32;
constexpr int kQuickSteps = 5;

std::string id_from(std::string_view text) {
  return sha256_of_bytes(std::as_bytes(std::span(text))).substr(0, kIdLength);
}

nlohmann::ordered_json map_json(const WarmMap& map) {
  return {{"id", map.id},
          {"npy", "/api/maps/" + map.id + ".npy"},
          {"heat", "/api/maps/" + map.id + ".heat.png"},
          {"overlay", "/api/maps/" + map.id + ".overlay.png"},
          {"height", map.map.size(0)},
          {"width", map.map.size(1)},
          {"min", map.map.min().item<double>()},
          {"max", map.map.max().item<double>()}};
}

}  // namespace

void check_method(const std::string& spec) {
  if (spec.size() > 200) throw input_error("method: expected at most 200 characters, found {}", spec.size());
  const MethodRecord& record = method_record(spec);
  if (!record.argument.empty() || record.kind == MethodKind::kGiven)
    throw input_error("method {}: it reads files, which no request may name", record.name);
}

bool is_quick(const WarmModel& model, const std::string& method, int refine) {
  if (refine > kQuickSteps) return false;
  const bool named = std::find(model.quick.begin(), model.quick.end(), method) != model.quick.end();
  return named || method == "aha" || (method.starts_with("aha:T=") && method.size() == 7 && method[6] <= '5');
}

std::vector<WarmModel> load_models(const std::vector<std::string>& targets, const std::string& explainer,
                                   const std::string& encoder, const Context& context) {
  std::vector<WarmModel> models;
  std::set<std::string> names;
  for (const auto& spec : targets) {
    WarmModel model;
    model.target = load_classifier(spec, {}, context);
    model.explainer =
        explainer_for(models.empty() ? explainer : "", *model.target, context, models.empty() ? encoder : "");
    model.copy = bf16_copy(*model.target, context);
    model.name = without_folders(spec);
    if (!names.insert(model.name).second)
      throw input_error("--target: expected different names, found {} twice", model.name);
    for (const auto& method : fitting_methods(model.by()))
      if (const auto& record = method_record(method);
          record.argument.empty() && record.kind != MethodKind::kGiven)
        model.methods.push_back(method);
    model.quick = quick_methods(model.by());
    models.push_back(std::move(model));
  }
  return models;
}

Workbench::Workbench(std::vector<WarmModel> models, std::unique_ptr<Dataset> samples,
                     const ServerLimits& limits)
    : models_(std::move(models)),
      samples_(std::move(samples)),
      limits_(limits),
      images_(int64_t{limits.cache_mb} << 19),
      maps_(int64_t{limits.cache_mb} << 19) {}

size_t Workbench::model_index(const std::string& name) const {
  if (name.empty()) return 0;
  std::vector<std::string> names;
  for (size_t m = 0; m < models_.size(); ++m) {
    if (models_[m].name == name) return m;
    names.push_back(models_[m].name);
  }
  throw unknown_name_error("model", name, names);
}

std::string Workbench::image_id(std::string_view bytes, const std::string& name) {
  return id_from(name + '\n' + sha256_of_bytes(std::as_bytes(std::span(bytes))));
}

WarmImage Workbench::keep(std::string id, std::string name, const Image& image) {
  WarmImage warm{std::move(id), std::move(name), image.width, image.height, {}};
  int64_t bytes = 0;
  for (const auto& model : models_) {
    warm.inputs.push_back(input_from_image(image, model.target->info().input).unsqueeze(0));
    bytes += warm.inputs.back().numel() * 4;
  }
  images_.put(warm.id, warm, bytes + 1024);
  return warm;
}

WarmImage Workbench::add_image(const std::string& id, const std::string& name, std::string_view bytes) {
  return keep(
      id, name,
      image_from_bytes(std::as_bytes(std::span(bytes)), name, {.max_megapixels = limits_.megapixels}));
}

WarmImage Workbench::add_sample(int64_t index) {
  if (!samples_ || index < 0 || index >= samples_->size())
    throw input_error("sample: expected 0..{}, found {}", samples_ ? samples_->size() - 1 : -1, index);
  const Image image = samples_->image(index);
  if (static_cast<double>(image.width) * image.height > 1e6 * limits_.megapixels)
    throw input_error("{}: larger than {} megapixels", samples_->id(index), limits_.megapixels);
  const std::string_view pixels(reinterpret_cast<const char*>(image.rgb.data()), image.rgb.size());
  const std::string name = samples_->id(index);
  return keep(image_id(pixels, name), name, image);
}

WarmMap Workbench::keep(WarmMap map) {
  maps_.put(map.id, map, map.map.numel() * 4 + 8192);
  return map;
}

WarmMap Workbench::add_map(std::string_view npy, const WarmImage& image, size_t model,
                           const std::string& wanted, const Context& context) {
  const NpyArray array = npy_from_bytes(std::as_bytes(std::span(npy)), "map");
  const Tensor& pixels = image.inputs[model];
  if (array.shape != std::vector<int64_t>{pixels.size(2), pixels.size(3)})
    throw input_error("map: expected shape ({}, {}), found {} dimensions of {} values", pixels.size(2),
                      pixels.size(3), array.shape.size(), array.values.size());
  WarmModel& by = models_[model];
  WarmMap map{id_from(image.id + by.name + id_from(npy)), image.id, by.name, "given", {}, {}, {}};
  map.map = torch::tensor(array.values).view({array.shape[0], array.shape[1]});
  if (!map.map.isfinite().all().item<bool>()) throw input_error("map: expected finite values, found others");
  map.chosen = chosen_class(wanted, probabilities(*by.target, pixels.to(torch_device(context)), context)[0],
                            by.target->info());
  map.json = {{"image", image.id}, {"name", image.name},
              {"model", by.name},  {"class", json_from(map.chosen)},
              {"method", "given"}, {"map", map_json(map)}};
  return keep(std::move(map));
}

std::string Workbench::map_id(const WarmImage& image, const std::string& model,
                              const ExplainOptions& options) {
  return id_from(fmt::format("{}\n{}\n{}\n{}\n{}\n{}", image.id, model, options.wanted, options.method,
                             options.refine, options.score));
}

WarmMap Workbench::explain(const WarmImage& image, size_t model, const ExplainOptions& options,
                           const Context& context) {
  WarmModel& by = models_[model];
  const auto method = method_of(options, by.by());
  const Tensor pixels = image.inputs[model].to(torch_device(context));
  Scorer scorer(*by.target, by.copy.get(), context);
  const Explanation one = explain_pixels(by.by(), *method, pixels, {image.name}, options, context,
                                         options.score ? &scorer : nullptr)[0];
  WarmMap map{
      map_id(image, by.name, options), image.id, by.name, options.method, one.scored.map, one.chosen, {}};
  map.json = {{"image", image.id}, {"name", image.name}, {"model", by.name}};
  auto said = json_from(one);
  said["map"] = map_json(map);
  said.erase("image");
  said.erase("part");
  map.json.update(said);
  return keep(std::move(map));
}

nlohmann::ordered_json Workbench::compare(const WarmImage& image, size_t model,
                                          const std::vector<std::string>& methods, const std::string& wanted,
                                          const Context& context) {
  WarmModel& by = models_[model];
  const Tensor pixels = image.inputs[model].to(torch_device(context));
  std::vector<std::unique_ptr<Method>> made;
  for (const auto& spec : methods) made.push_back(make_method(spec, by.by()));
  Scorer scorer(*by.target, by.copy.get(), context);
  Compared compared = compare_pixels(by.by(), pixels, image.name, methods, wanted, made, context, &scorer);
  nlohmann::ordered_json json = json_from(compared);
  json["image"] = image.id;
  json["name"] = image.name;
  json["model"] = by.name;
  json.erase("file");
  for (size_t m = 0; m < compared.methods.size(); ++m) {
    ExplainOptions options;
    options.method = methods[m];
    options.wanted = fmt::format("compare {}", compared.chosen.index);
    const ScoredMap& scored = compared.methods[m].scored;
    WarmMap map{
        map_id(image, by.name, options), image.id, by.name, methods[m], scored.map, compared.chosen, {}};
    auto& one = json["methods"][m];
    one["method"] = methods[m];
    one["map"] = map_json(map);
    one["curves"] = json_from_curves(*scored.score);
    map.json = one;
    map.json["image"] = image.id;
    map.json["name"] = image.name;
    map.json["model"] = by.name;
    map.json["class"] = json_from(compared.chosen);
    keep(std::move(map));
  }
  return json;
}

}  // namespace aha
