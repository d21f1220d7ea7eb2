#include "aha/app/explain.h"

#include "aha/tensor/torch.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/data/prefetch.h"
#include "aha/base/npy.h"
#include "aha/image/png.h"
#include "aha/image/read.h"
#include "aha/methods/catalog.h"
#include "aha/objective/step.h"

namespace aha {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kBatch = 8;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// "STEM" of each picture, with -2, -3, ... where several pictures share one.
std::vector<std::string> file_stems(const std::vector<std::string>& pictures) {
  std::vector<std::string> stems;
  std::set<std::string> taken;
  for (const auto& picture : pictures) {
    const std::string stem = fs::path(picture).stem().string();
    std::string name = stem;
    for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}-{}", stem, n);
    stems.push_back(name);
  }
  return stems;
}

// The method as the catalogue takes it: --refine and --budget are options of `aha`.
std::string method_spec(const ExplainOptions& options) {
  const bool learned = options.method == "aha" || options.method.starts_with("aha:");
  if (!learned && (options.refine > 0 || !options.budget.empty()))
    throw input_error("--refine and --budget: expected method aha, found {}", options.method);
  std::string spec = options.method;
  int steps = options.refine;
  if (!options.budget.empty()) {
    // Without --refine the time alone decides.
    if (steps == 0) steps = 100000;
    spec += fmt::format(":budget={}", milliseconds_from_text(options.budget));
  }
  if (steps > 0) spec += fmt::format(":T={}", steps);
  return spec;
}

std::span<const float> values_of(const Tensor& map) { return {map.data_ptr<float>(), static_cast<size_t>(map.numel())}; }

void write_files(Explanation& e, const Tensor& pixels, const std::string& stem, const ExplainOptions& options) {
  const auto H = e.map.size(0), W = e.map.size(1);
  const std::string base = (fs::path(options.out) / stem).string();
  e.map_file = base + ".map.npy";
  e.heat_file = base + ".heat.png";
  e.overlay_file = base + ".overlay.png";
  e.json_file = base + ".json";
  write_npy(e.map_file, {H, W}, values_of(e.map));
  write_png(e.heat_file, heat_image(values_of(e.map), static_cast<int>(W), static_cast<int>(H), options.heat));
  write_png(e.overlay_file, overlay(image_from_tensor(pixels), values_of(e.map), static_cast<int>(W), static_cast<int>(H), options.heat));
  write_file_atomically(e.json_file, json_from(e).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace

Fields fields(ExplainOptions& o) {
  Fields list;
  list.add("method", o.method, "aha or any method that `aha models` lists, NAME:key=value:key=value")
      .add("refine", o.refine, "steps on this very picture before the map is taken (method aha)").range(0, 100000)
      .add("budget", o.budget, "refine as far as this time allows a picture: 200ms, 1.5s")
      .add("class", o.wanted, "the class to explain: predicted, an index or a name")
      .add("out", o.out, "folder for STEM.map.npy, STEM.heat.png, STEM.overlay.png and STEM.json")
      .add("score", o.score, "deletion and insertion of the map, and of a random one");
  list.nest("heat-", fields(o.heat));
  return list;
}

double milliseconds_from_text(const std::string& text) {
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(std::min(used, text.size()));
  if (used == 0 || !(value > 0) || !std::isfinite(value) || (unit != "ms" && unit != "s" && !unit.empty()))
    throw input_error("budget: expected a time like 200ms or 1.5s, found '{}'", printable(text));
  return unit == "s" ? 1000 * value : value;
}

int class_from_text(const std::string& text, const ClassifierInfo& target) {
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    const int64_t index = text.size() < 10 ? std::stoll(text) : INT32_MAX;
    if (index >= target.classes) throw input_error("--class {}: expected 0..{} for {}", printable(text), target.classes - 1, target.name);
    return static_cast<int>(index);
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < target.class_names.size(); ++i) {
    const std::string& whole = target.class_names[i];
    if (lower(whole) == lower(text) || lower(whole.substr(0, whole.find(','))) == lower(text)) return static_cast<int>(i);
    names.push_back(whole);
  }
  if (names.empty()) throw input_error("--class {}: {} has no class names; expected predicted or 0..{}", printable(text), target.name, target.classes - 1);
  throw unknown_name_error("class", text, names);
}

std::vector<Tensor> scoring_references(const Tensor& pixels, const ClassifierInfo& target) {
  std::vector<Tensor> references;
  for (const char* kind : {"black", "mean", "blur"})
    references.push_back(reference_images(pixels, std::vector<std::string>(static_cast<size_t>(pixels.size(0)), kind), target));
  return references;
}

void explain(const MethodContext& explained_by, const std::vector<std::string>& pictures, const ExplainOptions& options,
             const std::function<void(const Explanation&)>& each, const Context& context) {
  Classifier& target = explained_by.target;
  const auto& info = target.info();
  const auto method = make_method(method_spec(options), explained_by);
  const auto random = make_method("random", explained_by);
  const int given_class = options.wanted == "predicted" ? -1 : class_from_text(options.wanted, info);
  if (!options.out.empty()) make_directories(options.out);
  const auto stems = file_stems(pictures);

  const auto count = static_cast<int64_t>(pictures.size());
  // A budget is a promise for each picture: they do not wait for each other.
  const int64_t batch = !options.budget.empty() ? 1 : context.batch_size > 0 ? context.batch_size : kBatch;
  Prefetch<Tensor> inputs(count, 2, 2 * batch, [&](int64_t i) { return input_from_image(read_image(pictures[i]), info.input); });
  auto progress = context.progress("explain", count);
  for (int64_t first = 0; first < count; first += batch) {
    context.cancel->check();
    std::vector<Tensor> rows;  // each (3, size, size)
    std::vector<uint64_t> streams;
    for (int64_t i = first; i < std::min(first + batch, count); ++i) {
      rows.push_back(*inputs.next());
      streams.push_back(picture_stream(pictures[i]));
    }
    const auto B = static_cast<int64_t>(rows.size());
    const Tensor pixels = torch::stack(rows).to(torch_device(context));  // (B, 3, size, size)
    const Tensor probs = probabilities(target, pixels, context);          // (B, C)
    const Tensor classes = given_class < 0 ? probs.argmax(1) : torch::full({B}, given_class, torch::kInt64);

    const auto start = std::chrono::steady_clock::now();
    const Tensor maps = method->maps(pixels, classes.to(pixels.device()), streams, context);  // (B, H, W)
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(B);
    std::vector<MapScore> scores, floors;
    if (options.score) {
      const auto references = scoring_references(pixels, info);
      scores = score_maps(target, pixels, maps, classes, references, context);
      floors = score_maps(target, pixels, random->maps(pixels, classes, streams, context), classes, references, context);
    }

    for (int64_t b = 0; b < B; ++b) {
      Explanation e;
      e.image = pictures[first + b];
      e.class_index = static_cast<int>(classes[b].item<int64_t>());
      if (e.class_index < static_cast<int>(info.class_names.size())) e.class_name = info.class_names[e.class_index];
      e.probability = probs[b][e.class_index].item<double>();
      e.method = options.method;
      e.refine = options.refine;
      e.map = maps[b].to(torch::kCPU, torch::kFloat32).contiguous();
      if (!torch::isfinite(e.map).all().item<bool>()) throw work_error("{}: the map of {} is not finite", options.method, e.image);
      e.low = e.map.min().item<double>();
      e.high = e.map.max().item<double>();
      e.seconds = seconds;
      if (options.score) {
        e.score = scores[static_cast<size_t>(b)];
        e.random = floors[static_cast<size_t>(b)];
      }
      if (!options.out.empty()) write_files(e, pixels[b], stems[first + b], options);
      each(e);
    }
    progress.advance(B);
  }
}

nlohmann::ordered_json json_from(const Explanation& e) {
  nlohmann::ordered_json json = {
      {"image", e.image},
      {"class", {{"index", e.class_index}, {"name", e.class_name}, {"probability", e.probability}}},
      {"method", e.method},
      {"refine", e.refine},
      {"map", {{"file", e.map_file}, {"height", e.map.size(0)}, {"width", e.map.size(1)}, {"min", e.low}, {"max", e.high}}}};
  if (e.score) {
    json["deletion"] = e.score->deletion;
    json["insertion"] = e.score->insertion;
    json["random"] = {{"deletion", e.random->deletion}, {"insertion", e.random->insertion}};
  }
  json["seconds"] = e.seconds;
  return json;
}

}  // namespace aha
