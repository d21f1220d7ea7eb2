#include "aha/evaluate/evaluate.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"
#include "aha/base/parallel.h"
#include "aha/data/prefetch.h"
#include "aha/base/npy.h"
#include "aha/image/png.h"
#include "aha/methods/catalog.h"
#include "aha/models/catalog.h"
#include "aha/perturb/reference.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBatch = 8;         // pictures explained together
constexpr double kTimingSeconds = 5;  // per method

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::string> explained_classes(const std::string& text) {
  return text == "both" ? std::vector<std::string>{"predicted", "truth"} : std::vector<std::string>{text};
}

void check_labels(const Dataset& data, const ClassifierInfo& info) {
  for (int64_t i = 0; i < data.size(); ++i)
    if (data.label(i) < 0 || data.label(i) >= info.classes)
      throw input_error("{}: {} has {}, but the true class of every picture is needed (0..{} of {})",
                        data.name(), data.id(i),
                        data.label(i) < 0 ? std::string("no label") : fmt::format("label {}", data.label(i)),
                        info.classes - 1, info.name);
}

void check_names(const Dataset& data) {
  std::set<std::string> seen;
  for (int64_t i = 0; i < data.size(); ++i)
    if (!seen.insert(data.id(i)).second)
      throw input_error("{}: expected every picture once, found {} twice", data.name(), data.id(i));
}

// The mean reference is the data set's mean colour where it is known, else ImageNet's.
ReferenceOptions reference_options_for(const std::string& data) {
  ReferenceOptions options;
  if (data.starts_with("cifar10")) options.colour = {0.4914, 0.4822, 0.4465};
  return options;
}

// Exact values in pixel space.
nlohmann::json json_from_references(const std::vector<std::string>& names, const ReferenceOptions& options) {
  ReferenceOptions copy = options;
  nlohmann::json out = {
      {"black", {0, 0, 0}}, {"mean", options.colour}, {"blur", json_from_fields(fields(copy))}};
  out["blur"].erase("colour");
  out["blur"]["rule"] =
      "gaussian, borders reflected; sigma 0 = 25/224 of the shorter side, kernel 0 = 4 sigma + 1 taps";
  for (const char* name : {"black", "mean", "blur"})
    if (std::find(names.begin(), names.end(), name) == names.end()) out.erase(name);
  return out;
}

// What the maps of an explainer depend on; null = there is none.
nlohmann::json explainer_settings(const MethodContext& by) {
  if (!by.explainer) return nullptr;
  nlohmann::json explainer = {{"sha256", by.explainer->card.sha256}, {"refinement", by.explainer->card.refinement}};
  const auto& decoder = by.explainer->explainer->decoder()->options;
  if (decoder.prior != "none") explainer["prior"] = {{"name", decoder.prior}, {"weight", decoder.prior_weight}};
  return explainer;
}

// What all rows of a store share. Methods and pictures are not among it: a store may grow.
nlohmann::json shared_settings(const MethodContext& by, const Dataset& data, const Protocol& protocol,
                               const nlohmann::json& references, const Context& context) {
  const auto& info = by.target.info();
  const auto& input = info.input;
  Protocol copy = protocol;
  nlohmann::json rules = json_from_fields(fields(copy));
  rules.erase("summary");
  rules["name"] = protocol.name;
  return {{"target",
           {{"name", info.name},
            {"architecture", info.architecture},
            {"sha256", info.sha256},
            {"classes", info.classes}}},
          {"input",
           {{"size", input.size},
            {"resize", input.resize},
            {"crop", input.crop},
            {"mean", input.mean},
            {"std", input.std}}},
          {"data", data.name()},
          {"protocol", rules},
          {"references", references},
          {"score", "softmax probability"},
          {"order", "pixels by descending map value, all channels together"},
          {"map", "at the input size; grids are enlarged bilinearly with half-pixel centres"},
          {"seed", context.seed},
          {"precision", context.precision == Precision::kBf16 ? "bf16" : "f32"},
          {"device", text_from_device(context.device)}};
}

struct Batch {
  std::vector<int64_t> index;  // in the data set
  std::vector<std::string> id;
  Tensor pixels;                                       // (B, 3, H, W)
  Tensor clean;                                        // (B, C) probabilities
  std::map<std::string, Tensor> references, replaced;  // (B, 3, H, W), (B, C)
  std::map<std::string, Tensor> classes;               // by explained class, (B)
};

// The chosen pictures of a batch.
struct Part {
  std::vector<int64_t> rows;
  Tensor rows_tensor;
  Tensor of(const Tensor& whole) const { return whole.index_select(0, rows_tensor.to(whole.device())); }
};

class Evaluator {
 public:
  Evaluator(const MethodContext& by, std::vector<std::unique_ptr<Method>> methods, const Dataset& data,
            const EvaluateOptions& options, const Protocol& protocol,
            const ReferenceOptions& reference_options, const std::string& out, const Context& context,
            RowStore& rows)
      : by_(by),
        methods_(std::move(methods)),
        data_(data),
        options_(options),
        protocol_(protocol),
        reference_options_(reference_options),
        out_(out),
        context_(context),
        rows_(rows),
        sweep_options_(sweep_options(protocol)) {}

  MethodCost cost(size_t method) const { return methods_[method]->cost(); }
  int64_t evaluations() const { return evaluations_; }

  void run() {
    const int64_t n = data_.size();
    Prefetch<Tensor> inputs(n, 2, 2 * kBatch, [&](int64_t i) {
      return input_from_image(data_.image(i), by_.target.info().input);
    });
    auto progress = context_.progress("evaluate", n);
    for (int64_t first = 0; first < n; first += kBatch) {
      if (context_.cancel->cancelled()) throw Error(ErrorKind::kCancelled, "stopped; the same command continues");
      std::vector<Tensor> pictures;
      std::vector<int64_t> index;
      for (int64_t i = first; i < std::min(first + kBatch, n); ++i) {
        pictures.push_back(*inputs.next());
        index.push_back(i);
      }
      const auto pixels = torch::stack(pictures).to(torch_device(context_));  // (B, 3, H, W)
      if (first == 0) time_methods(pixels);
      if (!all_known(index)) judge(prepared(index, pixels));
      progress.advance(static_cast<int64_t>(index.size()));
    }
  }

 private:
  bool all_known(const std::vector<int64_t>& index) const {
    for (const int64_t i : index)
      for (const auto& explained : explained_classes(options_.explained))
        for (const auto& method : options_.methods)
          if (!rows_.find(data_.id(i), method, explained) || !shown(i, method)) return false;
    return true;
  }

  // Whether the report has what it needs of this picture.
  bool shown(int64_t i, const std::string& method) const {
    return i >= options_.pictures || fs::exists(map_file(out_, i, method));
  }

  Batch prepared(const std::vector<int64_t>& index, const Tensor& pixels) {
    Batch b;
    b.index = index;
    b.pixels = pixels;
    for (const int64_t i : index) b.id.push_back(data_.id(i));
    b.clean = probabilities(by_.target, pixels, context_);
    if (!b.clean.isfinite().all().item<bool>())
      throw work_error("{}: the target gives no finite probability", by_.target.info().name);
    evaluations_ += pixels.size(0) * static_cast<int64_t>(1 + protocol_.references.size());
    for (const auto& name : protocol_.references) {
      b.references[name] = reference_image(pixels, reference_from_name(name), reference_options_);
      b.replaced[name] = probabilities(by_.target, b.references[name], context_);
    }
    b.classes["predicted"] = b.clean.argmax(1);
    std::vector<int64_t> labels;
    for (const int64_t i : index) labels.push_back(data_.label(i));
    b.classes["truth"] = torch::tensor(labels, torch::kInt64);
    return b;
  }

  void judge(const Batch& batch) {
    for (size_t i = 0; i < batch.index.size(); ++i)
      if (batch.index[i] < options_.pictures)
        write_png(picture_file(out_, batch.index[i]),
                  image_from_tensor(batch.pixels[static_cast<int64_t>(i)]));
    for (const auto& explained : explained_classes(options_.explained)) {
      std::vector<Part> parts(methods_.size());  // what is to be made, a method
      for (size_t m = 0; m < methods_.size(); ++m) {
        std::vector<Row> copies;
        Part& part = parts[m];
        for (size_t i = 0; i < batch.id.size(); ++i) {
          if (const Row* same = reusable(batch, i, m, explained)) {
            Row copy = *same;
            copy.explained = explained;
            copies.push_back(std::move(copy));
          } else if (!rows_.find(batch.id[i], options_.methods[m], explained) ||
                     !shown(batch.index[i], options_.methods[m])) {
            part.rows.push_back(static_cast<int64_t>(i));
          }
        }
        rows_.add(std::move(copies));
        part.rows_tensor = torch::tensor(part.rows, torch::kInt64);
      }
      std::vector<Tensor> maps(methods_.size());
      for (size_t m = 0; m < methods_.size(); ++m) {
        if (parts[m].rows.empty()) continue;
        if (!maps[m].defined()) make_maps(batch, parts, m, explained, maps);
        rows_.add(sweep_of(batch, parts[m], m, explained, maps[m]));
      }
    }
  }

  // Of method m, and of every other that is met on the way (methods/method.h): by the one that meets the most.
  void make_maps(const Batch& batch, const std::vector<Part>& parts, size_t m, const std::string& explained, std::vector<Tensor>& maps) {
    const auto wanted_of = [&](size_t leader) {
      std::vector<size_t> wanted;
      for (size_t other = 0; other < methods_.size(); ++other)
        if (other != leader && !maps[other].defined() && parts[other].rows == parts[m].rows && methods_[leader]->meets(*methods_[other])) wanted.push_back(other);
      return wanted;
    };
    size_t leader = m;
    std::vector<size_t> met = wanted_of(m);
    for (size_t other = 0; other < methods_.size(); ++other) {
      if (parts[other].rows != parts[m].rows || maps[other].defined() || !methods_[other]->meets(*methods_[m])) continue;
      const auto more = wanted_of(other);
      if (more.size() > met.size()) leader = other, met = more;
    }
    std::vector<Method*> others;
    for (const size_t i : met) others.push_back(methods_[i].get());
    const auto pixels = parts[m].of(batch.pixels), classes = parts[m].of(batch.classes.at(explained)).to(pixels.device());
    const auto made = methods_[leader]->maps_and_met(others, pixels, classes, streams_of(batch, parts[m]), context_);
    maps[leader] = made[0].cpu();  // (B, H, W)
    for (size_t i = 0; i < met.size(); ++i) maps[met[i]] = made[i + 1].cpu();
  }

  static std::vector<uint64_t> streams_of(const Batch& batch, const Part& part) {
    std::vector<uint64_t> streams;
    for (const int64_t r : part.rows) streams.push_back(picture_stream(batch.id[r]));
    return streams;
  }

  // The same class under its other name has the same row.
  const Row* reusable(const Batch& batch, size_t i, size_t m, const std::string& explained) const {
    if (explained != "truth" || rows_.find(batch.id[i], options_.methods[m], explained)) return nullptr;
    const auto at = static_cast<int64_t>(i);
    if (batch.classes.at("truth")[at].item<int64_t>() != batch.classes.at("predicted")[at].item<int64_t>())
      return nullptr;
    return rows_.find(batch.id[i], options_.methods[m], "predicted");
  }

  std::vector<Row> sweep_of(const Batch& batch, const Part& part, size_t m, const std::string& explained, const Tensor& maps) {
    const auto pixels = part.of(batch.pixels),
               classes = part.of(batch.classes.at(explained)).to(pixels.device());
    const auto streams = streams_of(batch, part);
    std::vector<Row> rows;
    Part usable;  // rows of `part`
    for (size_t i = 0; i < part.rows.size(); ++i) {
      const auto b = part.rows[i];
      const auto map = maps[static_cast<int64_t>(i)];
      Row row{batch.id[b], options_.methods[m],
              explained,   classes[static_cast<int64_t>(i)].item<int64_t>(),
              "ok",        0,
              {},          {},
              methods_[m]->learned()};
      if (!map.isfinite().all().item<bool>())
        row.state = "not finite";
      else if ((map == map[0][0]).all().item<bool>())
        row.state = "constant";
      else
        usable.rows.push_back(static_cast<int64_t>(i));
      for (const auto& reference : protocol_.references)
        row.replaced[reference] = batch.replaced.at(reference)[b][row.class_index].item<double>();
      keep_map(batch.index[b], m, explained, map, row.state);
      rows.push_back(std::move(row));
    }
    if (usable.rows.empty()) return rows;
    usable.rows_tensor = torch::tensor(usable.rows, torch::kInt64);

    const auto order = order_of(usable.of(maps), usable, streams, rows);
    for (const auto& reference : protocol_.references) {
      const SweepEnds ends{usable.of(part.of(batch.clean)), usable.of(part.of(batch.replaced.at(reference)))};
      const auto curves =
          sweep(by_.target, usable.of(pixels), usable.of(part.of(batch.references.at(reference))), order,
                usable.of(classes), ends, sweep_options_, context_);
      evaluations_ += static_cast<int64_t>(usable.rows.size()) * 2 * (sweep_options_.steps - 1);
      for (size_t i = 0; i < usable.rows.size(); ++i) rows[usable.rows[i]].curves[reference] = curves[i];
    }
    return rows;
  }

  // One picture at a time, so that jitter follows the picture.
  Tensor order_of(const Tensor& maps, const Part& usable, const std::vector<uint64_t>& streams,
                  std::vector<Row>& rows) const {
    std::vector<Tensor> orders;
    for (size_t i = 0; i < usable.rows.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const auto one =
          hard_order(maps.slice(0, at, at + 1), sweep_options_.ties, context_.seed, streams[usable.rows[i]]);
      rows[usable.rows[i]].tie_rate = one.tie_rate[0].item<double>();
      orders.push_back(one.order);
    }
    return torch::cat(orders);
  }

  void keep_map(int64_t index, size_t m, const std::string& explained, const Tensor& map,
                const std::string& state) const {
    if (index >= options_.pictures || explained != explained_classes(options_.explained)[0]) return;
    const auto values =
        (state == "not finite" ? torch::zeros_like(map) : map).to(torch::kFloat32).contiguous();
    write_npy(map_file(out_, index, options_.methods[m]), {map.size(0), map.size(1)},
              {values.data_ptr<float>(), static_cast<size_t>(values.numel())});
  }

  void time_methods(const Tensor& pixels) {
    if (options_.timing_runs == 0) return;
    const auto class_of = probabilities(by_.target, pixels, context_).argmax(1);
    for (size_t m = 0; m < methods_.size(); ++m) {
      if (rows_.timing(options_.methods[m])) continue;
      const auto once = [&](int64_t i) {
        const auto start = std::chrono::steady_clock::now();
        const auto classes = class_of.slice(0, i, i + 1).to(pixels.device());
        methods_[m]
            ->maps(pixels.slice(0, i, i + 1), classes, std::vector<uint64_t>{picture_stream(data_.id(i))},
                   context_)
            .cpu();
        return seconds_since(start);
      };
      Timing timing{once(0), 1};  // what warms up counts only where it alone takes long
      if (timing.seconds < kTimingSeconds) {
        double total = 0;
        int runs = 0;
        while (runs < options_.timing_runs && total < kTimingSeconds) total += once(runs++ % pixels.size(0));
        timing = {total / runs, runs};
      }
      timing.learned = methods_[m]->learned();
      rows_.add(options_.methods[m], timing);
    }
  }

  const MethodContext by_;
  const std::vector<std::unique_ptr<Method>> methods_;
  const Dataset& data_;
  const EvaluateOptions& options_;
  const Protocol& protocol_;
  const ReferenceOptions& reference_options_;
  const std::string& out_;
  const Context& context_;
  RowStore& rows_;
  const SweepOptions sweep_options_;
  int64_t evaluations_ = 0;
};

// A method's spec as a file name.
std::string file_name(std::string spec) {
  for (char& c : spec)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.' && c != '=' && c != '+') c = '_';
  return spec;
}

}  // namespace

Fields fields(EvaluateOptions& o) {
  return Fields()
      .add("methods", o.methods, "methods to judge, NAME:key=value:key=value each (see `aha models`)")
      .add("metrics", o.metrics, "metrics; a difference brings its parts")
      .add("references", o.references, "what replaces removed pixels; default: the protocol's")
      .choices({"black", "mean", "blur"})
      .add("class", o.explained, "the class that is explained")
      .choices({"predicted", "truth", "both"})
      .add("protocol", o.protocol, "named settings: " + list_some(protocol_names()))
      .add("pictures", o.pictures, "pictures shown in the report")
      .range(0, 100)
      .add("timing-runs", o.timing_runs, "timed maps a method, one picture a batch; 0 = no timing")
      .range(0, 10000);
}

std::string map_file(const std::string& out, int64_t index, const std::string& method) {
  return (fs::path(out) / "maps" / fmt::format("{:03}.{}.npy", index, file_name(method))).string();
}

std::string picture_file(const std::string& out, int64_t index) {
  return (fs::path(out) / "maps" / fmt::format("{:03}.png", index)).string();
}

Evaluation evaluate(const MethodContext& explained_by, const Dataset& data, const EvaluateOptions& options,
                    const std::string& out, const Context& context) {
  const auto start = std::chrono::steady_clock::now();
  if (options.methods.empty()) throw input_error("--methods: expected one method or more, found none");
  if (data.size() == 0) throw input_error("{}: expected one picture or more, found none", data.name());
  Protocol protocol = protocol_named(options.protocol);
  if (!options.references.empty()) protocol.references = options.references;
  const auto metrics = metrics_from_names(options.metrics);
  std::vector<std::unique_ptr<Method>> methods;
  for (const auto& spec : options.methods) methods.push_back(make_method(spec, explained_by));
  check_names(data);
  if (options.explained != "predicted") check_labels(data, explained_by.target.info());

  const ReferenceOptions reference_options = reference_options_for(data.name());
  const auto references = json_from_references(protocol.references, reference_options);
  const auto shared = shared_settings(explained_by, data, protocol, references, context);
  make_directories((fs::path(out) / "maps").string());
  RowStore rows(out, shared);
  const auto explainer = explainer_settings(explained_by);
  if (std::any_of(methods.begin(), methods.end(), [](const auto& method) { return method->learned(); })) rows.take_explainer(explainer);
  Evaluator evaluator(explained_by, std::move(methods), data, options, protocol, reference_options, out,
                      context, rows);
  evaluator.run();

  SummaryOptions wanted;
  wanted.methods = options.methods;
  wanted.explained = explained_classes(options.explained);
  wanted.references = protocol.references;
  wanted.metrics = metrics;
  wanted.rule = area_rule_from_text(protocol.area);
  wanted.seed = context.seed;
  for (int64_t i = 0; i < data.size(); ++i) wanted.pictures.push_back(data.id(i));
  for (size_t m = 0; m < options.methods.size(); ++m)
    wanted.cost[options.methods[m]] = {evaluator.cost(m).forwards, evaluator.cost(m).backwards};

  Evaluation result;
  result.summary = summarise(rows, wanted);
  result.settings = shared;
  result.settings["explainer"] = explainer;
  result.settings["class"] = options.explained;
  result.settings["methods"] = options.methods;
  result.settings["threads"] = threads();
  result.target_evaluations = evaluator.evaluations();
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace aha
