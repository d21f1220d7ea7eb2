#include "aha/evaluate/evaluate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/base/parallel.h"
#include "aha/base/timer.h"
#include "aha/data/prefetch.h"
#include "aha/evaluate/audit_remarks.h"
#include "aha/evaluate/image_batch.h"
#include "aha/evaluate/map_maker.h"
#include "aha/evaluate/map_rows.h"
#include "aha/evaluate/map_store.h"
#include "aha/evaluate/method_timing.h"
#include "aha/evaluate/row_key.h"
#include "aha/evaluate/selection.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/image/png.h"
#include "aha/kernels/core/cpu.h"
#include "aha/methods/catalog.h"
#include "aha/networks/class_names.h"
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

// Whether the maps depend on the class. Of forms that change another method's map nobody says so.
bool reads_class(const std::string& spec) {
  const std::string name = spec.substr(0, spec.find(':'));
  for (const auto& record : method_catalog())
    if (record.name == name) return record.reads_class;
  return true;
}

// What all rows of an evaluation share.
nlohmann::json shared_settings(const ClassifierInfo& info, const InputSpec& input, const Protocol& protocol,
                               const ReferenceOptions& reference_options, const std::string& score,
                               const Context& context) {
  return {
      {"target", {{"architecture", info.architecture}, {"sha256", info.sha256}, {"classes", info.classes}}},
      {"input", nlohmann::json(card_json_from_input(input))},
      {"protocol", json_of_rows(protocol)},
      {"references", json_from_references(reference_options, protocol.references)},
      {"mean_color", reference_options.mean_color},  // methods use it whatever the references of the protocol
      {"score", score == "probability" ? "softmax probability" : score},
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
                     const EvaluateOptions& options, const Protocol& protocol) {
  Protocol copy = protocol;
  settings["target"]["name"] = by.target.info().name;
  settings["protocol"] = json_from_fields(fields(copy));
  settings["protocol"]["name"] = protocol.name;
  settings.update({{"data", data.name()},
                   {"class", options.explained},
                   {"methods", options.methods},
                   {"metrics", options.metrics},
                   {"threads", threads()},
                   {"explainer", explainer_card(by)}});
  if (by.explainer)
    for (const char* lengthy : {"classes", "provenance"}) settings["explainer"].erase(lengthy);
}

Attribution chosen_attribution(const Attribution& all, const std::vector<int64_t>& images) {
  Attribution out;
  out.maps = all.maps.index_select(0, torch::tensor(images, torch::kInt64));
  for (const int64_t b : images) out.made.push_back(all.made[b]);
  return out;
}

// An image as it comes from the data set.
struct ReadImage {
  std::string content, failure;
  Tensor input;  // (3, size, size); undefined where it could not be read
  InputAnnotation annotation = {};
  std::string annotation_key = {};
};

// As the target says, unless the protocol does.
InputSpec input_of(const ClassifierInfo& info, const Protocol& protocol) {
  InputSpec input = info.input;
  if (protocol.resize == "stretch") {
    input.rule = ResizeRule::kStretch;
    input.resize = input.size;
  }
  return input;
}

std::vector<MethodFacts> facts_of(const Methods& methods, const std::vector<std::string>& specs) {
  std::vector<MethodFacts> facts;
  for (size_t m = 0; m < methods.size(); ++m) {
    const MethodRecord& record = method_record(specs[m]);
    if (specs[m].starts_with("inverted:"))
      facts.push_back({MethodKind::kAny, false, {}});
    else
      facts.push_back({record.kind, methods[m]->learned(), record.optimizes});
  }
  return facts;
}

// Of the explainer; 0 where nobody says.
double training_seconds(const EvaluateOptions& options, const MethodContext& by) {
  if (options.training_seconds > 0 || !by.explainer) return options.training_seconds;
  const auto card = explainer_card(by);
  const nlohmann::json::json_pointer at("/provenance/figures/seconds");
  return card.contains(at) && card.at(at).is_number() ? card.at(at).get<double>() : 0;
}

bool looks_at_objects(const MeasuredMetrics& group) {
  return group.need == MetricNeed::kMask || group.need == MetricNeed::kBox;
}

// Mask and boxes of the image, into what was read of it.
void read_annotation(const Annotation& found, const Image& image, const InputSpec& spec, ReadImage& into) {
  nlohmann::json facts = nlohmann::json::array();
  if (found.mask.width > 0) {
    if (found.mask.width != image.width || found.mask.height != image.height)
      throw input_error("mask: expected {} x {} pixels as the image has, found {} x {}", image.width,
                        image.height, found.mask.width, found.mask.height);
    into.annotation.mask = mask_in_input(found.mask, spec);
    facts.push_back(content_key(found.mask));
  }
  into.annotation.boxes = boxes_in_input(found.boxes, image.width, image.height, spec);
  for (const Box& box : found.boxes) facts.push_back({box.left, box.top, box.right, box.bottom});
  if (!facts.empty()) into.annotation_key = key_from_json(facts);
}

// One call of evaluate(). complete() makes what is missing of a batch.
struct Evaluator {
  const MethodContext& by;
  const Methods& methods;
  const Dataset& data;
  const EvaluateOptions& options;
  const Protocol& protocol;
  const ReferenceOptions& reference_options;
  const InputSpec& input;
  const std::vector<int64_t>& chosen;     // images of the data set
  const std::vector<std::string>& specs;  // of the methods
  const std::vector<MeasuredMetrics>& measured;
  const RowKeys& keys;
  const SummaryOptions& wanted;
  const std::string& out;
  const WorkerGroup& group;  // makes its own batches alone
  const Context& context;
  RowStore rows{out, group.rank()};
  MapStore maps{out};
  const std::vector<std::string> explained_classes = classes_from_text(options.explained);
  const ScoreKind score = score_kind_from_text(options.score);
  RowTable table{.timings = std::vector<Timing>(methods.size())};
  std::unique_ptr<ScoreQueue> questions = {};
  std::vector<ShownImage> shown = {};
  int64_t made_again = 0, end_questions = 0;
  int64_t target_evaluations() const { return end_questions + (questions ? questions->asked() : 0); }

  void run();
  ReadImage read(int64_t index) const;
  void time_methods(const ImageBatch& batch);
  void complete(ImageBatch batch);
  void make_rows(const ImageBatch& batch, const std::string& explained);
  // Values of one group of metrics, there when the questions are answered.
  struct PendingValues {
    std::vector<ValuesRow> rows;
    std::unique_ptr<MetricImages> images;
    std::unique_ptr<Tensor> maps;
    Metric::Pending finish;
  };
  struct OtherMethod {
    LoadedExplainer explainer;
    std::unique_ptr<Method> method;
  };
  std::map<std::pair<Classifier*, size_t>, OtherMethod> other_methods = {};
  Method& method_on(Classifier& other, size_t m);
  void ask_values(const ImageBatch& batch, size_t m, const std::string& explained, const Attribution& made,
                  const MeasuredMetrics& group, std::vector<PendingValues>& out);
  void add_rows(const ImageBatch& batch, size_t m, const std::string& explained, const Attribution& made);
  bool reuse_predicted(const ImageBatch& batch, int64_t b, size_t m);
  void fail(const std::string& image, const std::string& reason);
  void tabulate(const ImageBatch& batch);

  std::string key(const ImageBatch& batch, int64_t b, size_t m, const std::string& explained) const {
    return keys.row(batch.images[b], *methods[m], explained);
  }
  std::string map_key(const ImageBatch& batch, int64_t b, size_t m, const std::string& explained) const {
    return keys.map(batch.images[b], *methods[m], explained);
  }
  std::string value_key(const ImageBatch& batch, int64_t b, size_t m, const std::string& explained,
                        const MeasuredMetrics& group) const {
    return keys.value(batch.images[b], *methods[m], explained, group.identity, looks_at_objects(group));
  }
  bool in_report(int64_t index, const std::string& explained) const {
    return index < options.images && explained == explained_classes[0];
  }
  // The row, and the map that the report needs.
  bool there(const ImageBatch& batch, int64_t b, size_t m, const std::string& explained) const {
    const auto state = rows.state(key(batch, b, m, explained));
    if (state == RowStore::State::kMissing) return false;
    if (state != RowStore::State::kOk)
      return state == RowStore::State::kFailed || !in_report(batch.index[b], explained) ||
             maps.has(map_key(batch, b, m, explained));
    for (const auto& group : measured)
      if (!rows.has_values(value_key(batch, b, m, explained, group))) return false;
    return !in_report(batch.index[b], explained) || maps.has(map_key(batch, b, m, explained));
  }
};

ReadImage Evaluator::read(int64_t index) const {
  try {
    const Image image = data.image(index);
    ReadImage out{content_key(image), "", input_from_image(image, input)};
    if (std::any_of(measured.begin(), measured.end(), looks_at_objects))
      read_annotation(data.annotation(index), image, input, out);
    return out;
  } catch (const Error& error) {
    if (options.strict) throw;
    return {"", error.what(), {}};
  }
}

void Evaluator::run() {
  std::vector<int64_t> mine;  // places in `chosen` of this process's images
  for (int64_t place = 0; place < std::ssize(chosen); ++place)
    if (place / kBatch % group.size() == group.rank()) mine.push_back(place);
  Prefetch<ReadImage> inputs(std::ssize(mine), 2, 2 * kBatch,
                             [&](int64_t i) { return read(chosen[mine[i]]); });
  auto progress = context.progress("evaluate", std::ssize(mine));
  bool timed = false;
  for (int64_t first = 0; first < std::ssize(mine); first += kBatch) {
    if (context.cancel->canceled()) throw Error(ErrorKind::kCanceled, "stopped; the same command continues");
    const int64_t last = std::min(first + kBatch, std::ssize(mine));
    ImageBatch batch;
    std::vector<Tensor> pixels;
    for (const int64_t place : std::span(mine).subspan(first, last - first)) {
      const int64_t i = chosen[place];
      ReadImage image = *inputs.next();
      if (!image.failure.empty()) {
        fail(data.id(i), image.failure);
        continue;
      }
      batch.index.push_back(place);
      batch.images.push_back(
          {data.id(i), std::move(image.content), data.label(i), std::move(image.annotation_key)});
      batch.annotations.push_back(std::move(image.annotation));
      pixels.push_back(std::move(image.input));
    }
    if (!pixels.empty()) {
      batch.pixels = torch::stack(pixels).to(torch_device(context));  // (B, 3, H, W)
      if (!questions)
        questions =
            std::make_unique<ScoreQueue>(by.target, batch.pixels.size(2), batch.pixels.size(3), context);
      std::vector<std::string> names;
      for (const auto& image : batch.images) names.push_back(image.id);
      for (const auto& method : methods) method->name_images(names, image_streams(batch.pixels));
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
  if (options.timing_runs == 0 || group.size() > 1) return;  // others would disturb it
  Tensor classes;                                            // (B)
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
    end_questions += batch.size() * static_cast<int64_t>(1 + protocol.references.size());
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
  for (size_t m = 0; m < methods.size(); ++m) {
    std::vector<int64_t> kept;  // images whose map an earlier evaluation left here
    Attribution known;
    std::vector<Tensor> known_maps;
    for (int64_t b = 0; b < batch.size(); ++b) {
      if (there(batch, b, m, explained) || (explained == "truth" && reuse_predicted(batch, b, m))) continue;
      if (const auto key = map_key(batch, b, m, explained); maps.has(key)) {
        KeptMap one = maps.read(key);
        kept.push_back(b);
        known_maps.push_back(std::move(one.map));
        known.made.push_back(std::move(one.made));
      } else {
        missing[m].push_back(b);
      }
    }
    if (kept.empty()) continue;
    known.maps = torch::stack(known_maps);
    add_rows(chosen_images(batch, kept), m, explained, known);
  }
  for (const SharedWork& work : shared_work(methods, missing)) {
    const ImageBatch part = chosen_images(batch, work.rows);
    const auto made = make_maps(methods, work, part, explained, context);
    for (size_t i = 0; i < work.methods.size(); ++i) add_rows(part, work.methods[i], explained, made[i]);
  }
}

void Evaluator::add_rows(const ImageBatch& batch, size_t m, const std::string& explained,
                         const Attribution& made) {
  std::vector<int64_t> unswept;
  for (int64_t b = 0; b < batch.size(); ++b) {
    if (!rows.has(key(batch, b, m, explained))) unswept.push_back(b);
    if (const auto key = map_key(batch, b, m, explained);
        made.made[b].failure.empty() && (options.keep_maps || in_report(batch.index[b], explained)) &&
        !maps.has(key))
      maps.write(key, {made.maps[b], made.made[b], batch.images[b].id, options.methods[m], explained});
  }
  const ImageBatch part = chosen_images(batch, unswept);
  // A map that does not depend on the class serves both, if both are asked for.
  const bool both = explained == "predicted" && explained_classes.size() > 1 && !reads_class(specs[m]);
  PendingRows pending(*questions, part, chosen_attribution(made, unswept),
                      {options.methods[m], explained, sweep_options(protocol, score), both ? "truth" : ""},
                      context);
  std::vector<PendingValues> pending_values;
  for (const auto& group : measured) ask_values(batch, m, explained, made, group, pending_values);
  questions->flush();

  auto made_rows = pending.finish(by.target.info().name);
  for (size_t i = 0; i < made_rows.size(); ++i) {
    Row& row = made_rows[i];
    row.key = key(part, static_cast<int64_t>(i) % part.size(), m, row.explained);
    if (row.failed() && options.strict) throw work_error("{}: {}: {}", row.image, row.method, row.state);
    made_again += rows.has_any(row.image, row.method, row.explained) && !rows.has(row.key);
  }
  rows.add(std::move(made_rows));
  for (PendingValues& one : pending_values) {
    const auto found = one.finish();
    for (size_t i = 0; i < found.size(); ++i) one.rows[i].measured = found[i];
    rows.add(one.rows);
  }
}

// The same method for another target; a learned one looks at that target's activations then.
Method& Evaluator::method_on(Classifier& other, size_t m) {
  OtherMethod& made = other_methods[{&other, m}];
  if (!made.method) {
    if (by.explainer) made.explainer = {by.explainer->explainer->on_target(other), by.explainer->card};
    made.method = make_method(specs[m], {other, by.explainer ? &made.explainer : nullptr});
  }
  return *made.method;
}

// What this group of metrics has not measured yet.
void Evaluator::ask_values(const ImageBatch& batch, size_t m, const std::string& explained,
                           const Attribution& made, const MeasuredMetrics& group,
                           std::vector<PendingValues>& out) {
  std::vector<int64_t> todo;
  PendingValues one;
  for (int64_t b = 0; b < batch.size(); ++b) {
    const std::string key = value_key(batch, b, m, explained, group);
    if (rows.has_values(key) || state_of_map(made.maps[b], made.made[b].failure) != "ok") continue;
    todo.push_back(b);
    one.rows.push_back({key, batch.images[b].id, options.methods[m], explained, {}});
  }
  if (todo.empty()) return;
  one.images = std::make_unique<MetricImages>(metric_images(chosen_images(batch, todo), explained));
  one.maps = std::make_unique<Tensor>(chosen_attribution(made, todo).maps);
  const auto explain = [this, m](Classifier* other, const Tensor& pixels, const Tensor& classes,
                                 const std::vector<uint64_t>& streams) {
    Method& method = other ? method_on(*other, m) : *methods[m];
    return method.attribute(pixels, classes, streams, context).maps.cpu();
  };
  try {
    one.finish =
        group.metric->measure({by.target, *one.images, *one.maps, *questions, score, explain, context});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCanceled || options.strict) throw;
    one.finish = [n = todo.size(), reason = std::string(error.what())] {
      return std::vector<MetricValues>(n, MetricValues{{}, reason});
    };
  }
  out.push_back(std::move(one));
}

// The same class under its other name has the same row.
bool Evaluator::reuse_predicted(const ImageBatch& batch, int64_t b, size_t m) {
  if (batch.classes.at("truth")[b].item<int64_t>() != batch.classes.at("predicted")[b].item<int64_t>())
    return false;
  if (in_report(batch.index[b], "truth")) return false;
  const auto same = rows.find(key(batch, b, m, "predicted"));
  if (!same) return false;
  Row copy = *same;
  copy.explained = "truth";
  copy.key = key(batch, b, m, "truth");
  std::vector<ValuesRow> values;
  for (const auto& group : measured)
    if (const auto known = rows.values(value_key(batch, b, m, "predicted", group)))
      values.push_back({value_key(batch, b, m, "truth", group), copy.image, copy.method, "truth", *known});
  rows.add({std::move(copy)});
  rows.add(values);
  return true;
}

// Into the tables and the report.
void Evaluator::tabulate(const ImageBatch& batch) {
  for (int64_t b = 0; b < batch.size(); ++b) {
    const std::string& id = batch.images[b].id;
    std::vector<RowTable::MeasuredRow> of_image;
    for (const auto& explained : explained_classes)
      for (size_t m = 0; m < methods.size(); ++m) {
        auto& one = of_image.emplace_back(RowTable::MeasuredRow{*rows.find(key(batch, b, m, explained))});
        for (const auto& group : measured)
          if (auto found = rows.values(value_key(batch, b, m, explained, group)))
            one.values.push_back(std::move(*found));
      }
    table.add(of_image, wanted);
    if (batch.index[b] >= options.images) continue;
    ShownImage& one = shown.emplace_back(ShownImage{id, maps.file(keys.image(batch.images[b]), ".png")});
    if (!fs::exists(one.file)) write_png(one.file, image_from_tensor(batch.pixels[b].cpu()));
    const Row& row = of_image[0].row;
    const auto& names = by.target.info().class_names;
    one.class_name = row.class_index < std::ssize(names) ? names[row.class_index]
                                                         : fmt::format("class {}", row.class_index);
    one.probability = row.curves.empty() ? std::nan("") : row.curves.begin()->second.top.front();
    for (size_t m = 0; m < methods.size(); ++m)
      if (const auto key = map_key(batch, b, m, explained_classes[0]); maps.has(key))
        one.maps[options.methods[m]] = maps.file(key);
  }
}

}  // namespace

Fields fields(EvaluateOptions& o) {
  return Fields()
      .add("methods", o.methods,
           "methods to evaluate, NAME:key=value:key=value each (`aha models` and docs/methods.md have them); "
           "all = all that fit the target")
      .add("metrics", o.metrics, "metrics; a difference brings its parts; default: the protocol's")
      .add("references", o.references, "what replaces removed pixels; default: the protocol's")
      .choices({"black", "mean", "blur", "gray"})
      .add("class", o.explained, "the class that is explained")
      .choices({"predicted", "truth", "both"})
      .add("protocol", o.protocol,
           "named settings, NAME or NAME:key=value: " + list_some(protocol_names(), protocol_names().size()))
      .nest("", fields(o.changes))
      .add("training-seconds", o.training_seconds,
           "what the explainer's training took, for break-even counts; 0 = what its card says")
      .range(0, 1e12)
      .add("score", o.score, "how the target's answer for the class is measured")
      .choices({"probability", "logit", "log-odds"})
      .add("images", o.images, "images shown in the report")
      .range(0, 100)
      .add("timing-runs", o.timing_runs, "timed maps per method, one image a batch; 0 = no timing")
      .range(0, 10000)
      .add("keep-maps", o.keep_maps,
           "keep every map in OUT/maps: one more metric or protocol later does not make them again")
      .add("strict", o.strict, "stop at the first image or map that fails instead of leaving it out");
}

Evaluation evaluate(const MethodContext& explained_by, const Dataset& data, const EvaluateOptions& options,
                    const std::string& out, const Context& context) {
  WorkerGroup alone;
  return *evaluate_together(explained_by, data, options, out, alone, context);
}

std::optional<Evaluation> evaluate_together(const MethodContext& explained_by, const Dataset& given,
                                            const EvaluateOptions& asked, const std::string& out,
                                            WorkerGroup& group, const Context& context) {
  const Timer timer;
  if (asked.methods.empty()) throw input_error("--methods: expected one method or more, found none");
  EvaluateOptions options = asked;
  options.methods = method_labels(asked.methods);
  if (given.size() == 0) throw input_error("{}: expected one image or more, found none", given.name());
  options.changes.references = options.references;
  Protocol protocol = changed(protocol_named(options.protocol), options.changes);
  if (options.metrics.empty()) options.metrics = protocol.metrics;
  const auto metrics = metrics_from_names(options.metrics);
  const auto measured = measured_metrics(options.metrics);
  if (std::none_of(metrics.begin(), metrics.end(),
                   [](const MetricRecord& metric) { return metric.need == MetricNeed::kCurves; }))
    protocol.steps = 0;  // nobody looks at curves
  Methods methods;
  for (const auto& spec : asked.methods) methods.push_back(make_method(spec, explained_by));
  check_names(given);
  const ClassifierInfo& info = explained_by.target.info();
  const bool labels_matter = options.explained != "predicted" || protocol.correct_only;
  std::unique_ptr<Dataset> with_target_classes;
  if (labels_matter)
    if (auto classes = classes_of_labels(given.class_names(), given.name(), info); !classes.empty())
      with_target_classes = relabeled(given, std::move(classes));
  const Dataset& data = with_target_classes ? *with_target_classes : given;
  if (labels_matter) check_labels(data, info);
  if (!data.annotated() && std::any_of(measured.begin(), measured.end(), looks_at_objects))
    throw input_error(
        "{}: expected masks or boxes (list:FILE.csv with columns mask or x0,y0,x1,y1), which {} "
        "looks at, found none",
        data.name(), std::find_if(metrics.begin(), metrics.end(), [](const MetricRecord& metric) {
                       return metric.need == MetricNeed::kMask || metric.need == MetricNeed::kBox;
                     })->name);

  const InputSpec input = input_of(info, protocol);
  ReferenceOptions reference_options = with_mean_color(protocol.reference, info.mean_color);
  reference_options.gray.assign(info.input.mean.begin(), info.input.mean.end());
  const Selection selection =
      select_images(protocol, reference_options, explained_by.target, data, input, context);
  const auto settings = shared_settings(info, input, protocol, reference_options, options.score, context);
  const RowKeys keys(settings, explainer_card(explained_by));
  SummaryOptions wanted;
  wanted.methods = options.methods;
  wanted.explained = classes_from_text(options.explained);
  wanted.references = protocol.references;
  wanted.deletion_references = references_of(protocol, false);
  wanted.insertion_references = references_of(protocol, true);
  wanted.facts = facts_of(methods, asked.methods);
  wanted.training_seconds = training_seconds(options, explained_by);
  wanted.metrics = metrics;
  wanted.rule = area_rule_from_text(protocol.area);
  wanted.seed = context.seed;
  for (int64_t i = 0; i < data.size(); ++i) wanted.images.push_back(data.id(i));

  const auto run_as = [&](const WorkerGroup& who) {
    auto evaluator = std::make_unique<Evaluator>(explained_by, methods, data, options, protocol,
                                                 reference_options, input, selection.chosen, asked.methods,
                                                 measured, keys, wanted, out, who, context);
    evaluator->run();
    return evaluator;
  };
  Tensor evaluations = torch::zeros({1}, torch::kFloat64);  // of the target, by all workers
  if (group.size() > 1) {
    evaluations += static_cast<double>(run_as(group)->target_evaluations());
    group.sum(evaluations);
    if (!group.leader()) return std::nullopt;
  }
  const WorkerGroup alone;  // finds what the workers made
  const auto finished = run_as(alone);
  Evaluator& evaluator = *finished;
  evaluator.table.not_chosen = selection.left_out;

  Evaluation result;
  result.summary = summarize(evaluator.table, wanted);
  for (auto& remark : audit_remarks(result.summary)) result.summary.warnings.push_back(std::move(remark));
  result.settings = settings;
  add_to_settings(result.settings, explained_by, data, options, protocol);
  result.shown = std::move(evaluator.shown);
  result.target_evaluations =
      static_cast<int64_t>(evaluations.item<double>()) + evaluator.target_evaluations();
  result.seconds = timer.seconds();
  return result;
}

}  // namespace aha
