#include "aha/evaluate/evaluate.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/npy.h"
#include "aha/base/parallel.h"
#include "aha/base/timer.h"
#include "aha/data/prefetch.h"
#include "aha/evaluate/image_batch.h"
#include "aha/evaluate/map_maker.h"
#include "aha/evaluate/map_rows.h"
#include "aha/evaluate/method_timing.h"
#include "aha/evaluate/row_key.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/image/png.h"
#include "aha/kernels/core/cpu.h"
#include "aha/methods/catalog.h"
#include "aha/networks/preprocess.h"
#include "aha/perturb/reference.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBatch = 8;  // images explained together

std::vector<std::string> classes_from_text(const std::string& text) {
  return text == "both" ? std::vector<std::string>{"predicted", "truth"} : std::vector<std::string>{text};
}

void check_labels(const Dataset& data, const ClassifierInfo& info) {
  for (int64_t i = 0; i < data.size(); ++i)
    if (data.label(i) < 0 || data.label(i) >= info.classes)
      throw input_error("{}: {} has {}, but the true class of every image is needed (0..{} of {})",
                        data.name(), data.id(i),
                        data.label(i) < 0 ? std::string("no label") : fmt::format("label {}", data.label(i)),
                        info.classes - 1, info.name);
}

void check_names(const Dataset& data) {
  std::set<std::string> seen;
  for (int64_t i = 0; i < data.size(); ++i)
    if (!seen.insert(data.id(i)).second)
      throw input_error("{}: expected every image once, found {} twice", data.name(), data.id(i));
}

// What all rows of an evaluation share.
nlohmann::json shared_settings(const ClassifierInfo& info, const Protocol& protocol,
                               const ReferenceOptions& reference_options, const Context& context) {
  Protocol copy = protocol;
  nlohmann::json rules = json_from_fields(fields(copy));
  rules.erase("summary");
  return {
      {"target", {{"architecture", info.architecture}, {"sha256", info.sha256}, {"classes", info.classes}}},
      {"input", nlohmann::json(card_json_from_input(info.input))},
      {"protocol", rules},
      {"references", json_from_references(reference_options, protocol.references)},
      {"mean_color", reference_options.mean_color},  // methods use it whatever the references of the protocol
      {"score", "softmax probability"},
      {"order", "pixels by descending map value, all channels together"},
      {"map", "at the input size; grids are upsampled bilinearly with half-pixel centers"},
      {"seed", context.seed},
      {"precision", context.precision == Precision::kBf16 ? "bf16" : "f32"},
      {"device", text_from_device(context.device)},
      {"numerics", kNumericsVersion}};
}

nlohmann::json explainer_card(const MethodContext& by) {
  return by.explainer ? nlohmann::json(json_from_card(by.explainer->card)) : nlohmann::json();
}

// What a reader of the results wants to know beside the settings of the rows.
void add_to_settings(nlohmann::json& settings, const MethodContext& by, const Dataset& data,
                     const EvaluateOptions& options) {
  settings["target"]["name"] = by.target.info().name;
  settings["protocol"]["name"] = options.protocol;
  settings.update({{"data", data.name()},
                   {"class", options.explained},
                   {"methods", options.methods},
                   {"threads", threads()},
                   {"explainer", explainer_card(by)}});
  if (by.explainer)
    for (const char* lengthy : {"classes", "provenance"}) settings["explainer"].erase(lengthy);
}

// An image as it comes from the data set.
struct ReadImage {
  std::string content, failure;
  Tensor input;  // (3, size, size); undefined where it could not be read
};

// One call of evaluate(). complete() makes what is missing of a batch.
struct Evaluator {
  const MethodContext& by;
  const Methods& methods;
  const Dataset& data;
  const EvaluateOptions& options;
  const Protocol& protocol;
  const ReferenceOptions& reference_options;
  const RowKeys& keys;
  const std::string& out;
  const Context& context;
  RowStore rows{out};
  const std::vector<std::string> explained_classes = classes_from_text(options.explained);
  RowTable table{{}, std::vector<Timing>(methods.size()), {}};
  std::vector<ShownImage> shown = {};
  int64_t target_evaluations = 0, made_again = 0;

  void run();
  ReadImage read(int64_t index) const;
  void time_methods(const ImageBatch& batch);
  void complete(ImageBatch batch);
  void make_rows(const ImageBatch& batch, const std::string& explained);
  bool reuse_predicted(const ImageBatch& batch, int64_t b, size_t m);
  void fail(const std::string& image, const std::string& reason);
  void tabulate(const ImageBatch& batch);

  std::string key(const ImageBatch& batch, int64_t b, size_t m, const std::string& explained) const {
    return keys.row(batch.images[b], *methods[m], explained);
  }
  std::string map_file(const std::string& key) const {
    return (fs::path(out) / "maps" / (key + ".npy")).string();
  }
  bool in_report(int64_t index, const std::string& explained) const {
    return index < options.images && explained == explained_classes[0];
  }
  // The row, and the map that the report needs.
  bool there(const ImageBatch& batch, int64_t b, size_t m, const std::string& explained) const {
    const std::string key = this->key(batch, b, m, explained);
    const Row* row = rows.find(key);
    return row && (row->failed() || !in_report(batch.index[b], explained) || fs::exists(map_file(key)));
  }
};

ReadImage Evaluator::read(int64_t index) const {
  try {
    const Image image = data.image(index);
    return {content_key(image), "", input_from_image(image, by.target.info().input)};
  } catch (const Error& error) {
    if (options.strict) throw;
    return {"", error.what(), {}};
  }
}

void Evaluator::run() {
  const int64_t n = data.size();
  Prefetch<ReadImage> inputs(n, 2, 2 * kBatch, [&](int64_t i) { return read(i); });
  auto progress = context.progress("evaluate", n);
  bool timed = false;
  for (int64_t first = 0; first < n; first += kBatch) {
    if (context.cancel->canceled()) throw Error(ErrorKind::kCanceled, "stopped; the same command continues");
    const int64_t last = std::min(first + kBatch, n);
    ImageBatch batch;
    std::vector<Tensor> pixels;
    for (int64_t i = first; i < last; ++i) {
      ReadImage image = *inputs.next();
      if (!image.failure.empty()) {
        fail(data.id(i), image.failure);
        continue;
      }
      batch.index.push_back(i);
      batch.images.push_back({data.id(i), std::move(image.content), data.label(i)});
      pixels.push_back(std::move(image.input));
    }
    if (!pixels.empty()) {
      batch.pixels = torch::stack(pixels).to(torch_device(context));  // (B, 3, H, W)
      std::vector<std::string> names;
      for (const auto& image : batch.images) names.push_back(image.id);
      for (const auto& method : methods) method->name_images(names);
      if (!std::exchange(timed, true)) time_methods(batch);
      complete(std::move(batch));
    }
    progress.advance(last - first);
  }
  if (made_again > 0)
    spdlog::info("{} rows are made again: their image, label, explainer or settings changed", made_again);
}

void Evaluator::fail(const std::string& image, const std::string& reason) {
  if (options.strict) throw work_error("{}: {}", image, reason);
  table.unusable_images[image] = reason;
}

void Evaluator::time_methods(const ImageBatch& batch) {
  if (options.timing_runs == 0) return;
  Tensor classes;  // (B)
  for (size_t m = 0; m < methods.size(); ++m) {
    const std::string key = keys.timing(*methods[m], threads(), describe_cpu());
    if (const Timing* known = rows.timing(key)) {
      table.timings[m] = *known;
      continue;
    }
    if (!classes.defined()) classes = probabilities(by.target, batch.pixels, context).argmax(1);
    table.timings[m] = time_method(*methods[m], batch, classes, options.timing_runs, context);
    if (table.timings[m].runs > 0) rows.add(key, options.methods[m], table.timings[m]);
  }
}

// Makes what is missing of these images.
void Evaluator::complete(ImageBatch batch) {
  bool all_there = true;
  for (int64_t b = 0; b < batch.size(); ++b)
    for (const auto& explained : explained_classes)
      for (size_t m = 0; m < methods.size(); ++m) all_there = all_there && there(batch, b, m, explained);
  if (!all_there) {
    ask_target(batch, by.target, protocol.references, reference_options, context);
    target_evaluations += batch.size() * static_cast<int64_t>(1 + protocol.references.size());
    std::vector<int64_t> usable;
    for (int64_t b = 0; b < batch.size(); ++b)
      if (batch.clean[b].isfinite().all().item<bool>())
        usable.push_back(b);
      else
        fail(batch.images[b].id, fmt::format("{} gives no finite probability", by.target.info().name));
    batch = chosen_images(batch, usable);
    if (batch.size() == 0) return;
    for (const auto& explained : explained_classes) make_rows(batch, explained);
  }
  tabulate(batch);
}

void Evaluator::make_rows(const ImageBatch& batch, const std::string& explained) {
  std::vector<std::vector<int64_t>> missing(methods.size());
  for (size_t m = 0; m < methods.size(); ++m)
    for (int64_t b = 0; b < batch.size(); ++b)
      if (!there(batch, b, m, explained) && !(explained == "truth" && reuse_predicted(batch, b, m)))
        missing[m].push_back(b);
  for (const SharedWork& work : shared_work(methods, missing)) {
    const ImageBatch part = chosen_images(batch, work.rows);
    const auto made = make_maps(methods, work, part, explained, context);
    for (size_t i = 0; i < work.methods.size(); ++i) {
      const size_t m = work.methods[i];
      auto made_rows = rows_of_maps(by.target, part, made[i],
                                    {options.methods[m], explained, sweep_options(protocol)}, context);
      for (int64_t b = 0; b < part.size(); ++b) {
        Row& row = made_rows[b];
        row.key = key(part, b, m, explained);
        if (row.failed() && options.strict) throw work_error("{}: {}: {}", row.image, row.method, row.state);
        made_again += rows.has_any(row.image, row.method, explained) && !rows.find(row.key);
        target_evaluations += static_cast<int64_t>(row.curves.size()) * 2 * (protocol.steps - 1);
        if (!in_report(part.index[b], explained) || row.failed()) continue;
        const Tensor map = made[i].maps[b].to(torch::kFloat32).contiguous();  // (H, W)
        write_npy(map_file(row.key), {map.size(0), map.size(1)},
                  {map.data_ptr<float>(), static_cast<size_t>(map.numel())});
      }
      rows.add(std::move(made_rows));
    }
  }
}

// The same class under its other name has the same row.
bool Evaluator::reuse_predicted(const ImageBatch& batch, int64_t b, size_t m) {
  if (batch.classes.at("truth")[b].item<int64_t>() != batch.classes.at("predicted")[b].item<int64_t>())
    return false;
  const Row* same = rows.find(key(batch, b, m, "predicted"));
  if (!same || in_report(batch.index[b], "truth")) return false;
  Row copy = *same;
  copy.explained = "truth";
  copy.key = key(batch, b, m, "truth");
  rows.add({std::move(copy)});
  return true;
}

// Into the tables and the report.
void Evaluator::tabulate(const ImageBatch& batch) {
  for (int64_t b = 0; b < batch.size(); ++b) {
    const std::string& id = batch.images[b].id;
    for (const auto& explained : explained_classes)
      for (size_t m = 0; m < methods.size(); ++m)
        table.rows[{id, options.methods[m], explained}] = rows.find(key(batch, b, m, explained));
    if (batch.index[b] >= options.images) continue;
    ShownImage& one = shown.emplace_back(
        ShownImage{id, (fs::path(out) / "maps" / (keys.image(batch.images[b]) + ".png")).string(), {}});
    if (!fs::exists(one.file)) write_png(one.file, image_from_tensor(batch.pixels[b].cpu()));
    for (size_t m = 0; m < methods.size(); ++m)
      if (const auto file = map_file(key(batch, b, m, explained_classes[0])); fs::exists(file))
        one.maps[options.methods[m]] = file;
  }
}

}  // namespace

Fields fields(EvaluateOptions& o) {
  return Fields()
      .add("methods", o.methods,
           "methods to evaluate, NAME:key=value:key=value each (`aha models` and docs/methods.md have them); "
           "all = all that fit the target")
      .add("metrics", o.metrics, "metrics; a difference brings its parts")
      .add("references", o.references, "what replaces removed pixels; default: the protocol's")
      .choices({"black", "mean", "blur"})
      .add("class", o.explained, "the class that is explained")
      .choices({"predicted", "truth", "both"})
      .add("protocol", o.protocol, "named settings: " + list_some(protocol_names()))
      .add("images", o.images, "images shown in the report")
      .range(0, 100)
      .add("timing-runs", o.timing_runs, "timed maps per method, one image a batch; 0 = no timing")
      .range(0, 10000)
      .add("strict", o.strict, "stop at the first image or map that fails instead of leaving it out");
}

Evaluation evaluate(const MethodContext& explained_by, const Dataset& data, const EvaluateOptions& asked,
                    const std::string& out, const Context& context) {
  const Timer timer;
  if (asked.methods.empty()) throw input_error("--methods: expected one method or more, found none");
  EvaluateOptions options = asked;
  options.methods = method_labels(asked.methods);
  if (data.size() == 0) throw input_error("{}: expected one image or more, found none", data.name());
  Protocol protocol = protocol_named(options.protocol);
  if (!options.references.empty()) protocol.references = options.references;
  const auto metrics = metrics_from_names(options.metrics);
  Methods methods;
  for (const auto& spec : asked.methods) methods.push_back(make_method(spec, explained_by));
  check_names(data);
  if (options.explained != "predicted") check_labels(data, explained_by.target.info());

  const ReferenceOptions reference_options =
      with_mean_color(protocol.reference, explained_by.target.info().mean_color);
  const auto settings = shared_settings(explained_by.target.info(), protocol, reference_options, context);
  const RowKeys keys(settings, explainer_card(explained_by));
  make_directories((fs::path(out) / "maps").string());
  Evaluator evaluator{explained_by, methods, data, options, protocol, reference_options, keys, out, context};
  evaluator.run();

  SummaryOptions wanted;
  wanted.methods = options.methods;
  wanted.explained = classes_from_text(options.explained);
  wanted.references = protocol.references;
  wanted.metrics = metrics;
  wanted.rule = area_rule_from_text(protocol.area);
  wanted.seed = context.seed;
  for (int64_t i = 0; i < data.size(); ++i) wanted.images.push_back(data.id(i));

  Evaluation result;
  result.summary = summarize(evaluator.table, wanted);
  result.settings = settings;
  add_to_settings(result.settings, explained_by, data, options);
  result.shown = std::move(evaluator.shown);
  result.target_evaluations = evaluator.target_evaluations;
  result.seconds = timer.seconds();
  return result;
}

}  // namespace aha
