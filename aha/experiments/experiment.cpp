#include "aha/experiments/experiment.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "aha/app/compare.h"
#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/folder_lock.h"
#include "aha/base/log.h"
#include "aha/base/npy.h"
#include "aha/base/timer.h"
#include "aha/data/dataset.h"
#include "aha/evaluate/report.h"
#include "aha/experiments/disc_images.h"
#include "aha/experiments/figures.h"
#include "aha/experiments/section.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/image/png.h"
#include "aha/methods/catalog.h"
#include "aha/methods/fitting.h"
#include "aha/networks/catalog.h"
#include "aha/tensor/tensor.h"
#include "aha/train/classifier_trainer.h"
#include "aha/train/explainer_trainer.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kQuickImages = 2, kQuickTraining = 40, kQuickDiscs = 60, kQuickSteps = 2;

bool is_made(const std::string& text) {
  return text.starts_with("made:");
}

// Takes the keys that belong to the context.
Context taken_from(nlohmann::json& options, Context context) {
  if (options.contains("batch-size")) context.batch_size = options["batch-size"].get<int>();
  if (options.contains("seed")) context.seed = options["seed"].get<uint64_t>();
  options.erase("batch-size");
  options.erase("seed");
  return context;
}

SliceOptions slice_of(const ImageChoice& choice) {
  return {.every = std::max<int64_t>(1, choice.of / choice.images), .limit = choice.images};
}

class Experiment {
 public:
  Experiment(const Recipe& recipe, const ExperimentOptions& options, const Context& context)
      : recipe_(recipe), options_(options), context_(context), folder_(fs::path(options.out) / recipe.name) {}

  Outcome run() {
    const Timer timer;
    make_directories(folder_.string());
    if (options_.quick) outcome_.facts.push_back("A quick run, whose figures mean nothing.");
    for (const auto& s : recipe_.discs) disc(s);
    for (const auto& s : recipe_.fits) fit_target(s);
    for (const auto& s : recipe_.trains) train(s);
    for (const auto& s : recipe_.maps) maps(s);
    for (const auto& s : recipe_.runs) evaluation(s);
    for (const auto& s : recipe_.sheets) sheet(s);
    for (const auto& s : recipe_.soft_masks) soft_masks(s);
    for (const auto& s : recipe_.charts) chart(s);
    outcome_.seconds = timer.seconds();
    write("table.md", outcome_markdown(recipe_, outcome_));
    write("table.csv", outcome_csv(recipe_, outcome_));
    write("section.md", section_markdown(recipe_, outcome_));
    return std::move(outcome_);
  }

 private:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomically(path(name), text);
  }

  // made:STEP as the folder of that step.
  std::string resolved(std::string text) const {
    if (const size_t at = text.find("made:"); at != std::string::npos)
      text = text.substr(0, at) + path(text.substr(at + 5));
    return text;
  }
  std::string resolved_data(const std::string& text) const {
    return is_made(text) ? "list:" + path(text.substr(5)) + "/list.csv" : text;
  }

  // Calls make(goes_on) unless the step was made from the same settings before; goes_on = it was begun.
  template <class Make>
  void once(const std::string& name, nlohmann::json settings, const std::vector<std::string>& uses,
            Make make) {
    for (const auto& use : uses)
      if (is_made(use)) settings["uses"].push_back(made_.at(use.substr(5)));
    const std::string text = settings.dump();
    made_[name] = sha256_of_bytes(std::as_bytes(std::span(text)));
    const std::string file = path(name + ".json");
    nlohmann::json old;
    if (fs::exists(file)) old = nlohmann::json::parse(read_file(file), nullptr, false);
    const bool same = old.is_object() && old.value("settings", nlohmann::json()) == settings;
    if (same && old.value("done", false)) return;
    const auto note = [&](bool done) {
      write(name + ".json", nlohmann::json({{"settings", settings}, {"done", done}}).dump(2) + "\n");
    };
    note(false);
    spdlog::info("{}: {}", recipe_.name, name);
    make(same);
    note(true);
  }

  void set_out(TrainOptions& train, const std::string& name, bool goes_on) const {
    train.out = path(name);
    const bool begun = fs::exists(fs::path(train.out) / "checkpoint.safetensors");
    train.resume = goes_on && begun;
    train.overwrite = !train.resume && fs::exists(train.out);
  }

  void disc(const DiscStep& given) {
    DiscStep step = given;
    once(step.name, json_from_fields(fields(step)), {}, [&](bool) {
      fs::remove_all(path(step.name));
      write_disc_images(step, path(step.name), context_);
    });
  }

  void fit_target(const FitStep& step) {
    nlohmann::json settings = step.options;
    settings["init"] = step.init, settings["data"] = step.data;
    once(step.name, settings, {step.init, step.data}, [&](bool goes_on) {
      FitOptions fit;
      nlohmann::json options = step.options;
      const Context context = taken_from(options, context_);
      set_all_from_json(fields(fit), options, recipe_.name + ": [[fit]]");
      fit.init = resolved(step.init), fit.data = resolved_data(step.data);
      set_out(fit.train, step.name, goes_on);
      fit_classifier(fit, context);
    });
  }

  void train(const TrainStep& step) {
    nlohmann::json options = step.recipe.empty() ? nlohmann::json::object() : shipped_recipe(step.recipe);
    options.update(step.options);
    nlohmann::json settings = options;
    settings["target"] = step.target, settings["data"] = step.data, settings["images"] = step.images;
    once(step.name, settings, {step.target, step.data}, [&](bool goes_on) {
      ExplainerRun run;
      const Context context = taken_from(options, context_);
      set_all_from_json(fields(run), options, recipe_.name + ": [[train]]");
      run.target = resolved(step.target), run.data = resolved_data(step.data);
      run.slice.limit = step.images;
      set_out(run.train.train, step.name, goes_on);
      train_explainer(run, context);
    });
    outcome_.facts.push_back(
        fmt::format("Explainer {}: {} images of {}.", step.name, step.images, without_folders(step.data)));
  }

  // FOLDER/ID.npy, the class of the label; what is there already is kept.
  void maps(const MapsStep& given) {
    MapsStep step = given;
    once(step.name,
         json_from_fields(Fields()
                              .add("target", step.target, "")
                              .add("explainer", step.explainer, "")
                              .add("method", step.method, "")
                              .nest("", fields(step.choice))),
         {step.target, step.explainer}, [&](bool goes_on) {
           if (!goes_on) fs::remove_all(path(step.name));
           const auto target = load_classifier(resolved(step.target), {}, context_);
           auto explainer = explainer_for(resolved(step.explainer), *target, context_);
           const auto method = make_method(step.method, {*target, explainer ? &*explainer : nullptr});
           const auto data = slice(open_dataset(resolved_data(step.choice.data)), slice_of(step.choice));
           auto progress = context_.progress("maps", data->size());
           for (int64_t i = 0; i < data->size(); ++i) {
             context_.cancel->check();
             const std::string id = data->id(i);
             const fs::path file =
                 fs::path(path(step.name)) / fs::path(id).relative_path().replace_extension(".npy");
             if (!fs::exists(file)) {
               make_directories(file.parent_path().string());
               const Tensor pixels = input_from_image(data->image(i), target->info().input).unsqueeze(0);
               const Tensor map = method
                                      ->attribute(pixels.to(torch_device(context_)),
                                                  torch::full({1}, data->label(i), torch::kInt64),
                                                  image_streams(pixels), context_)
                                      .maps[0]
                                      .cpu()
                                      .contiguous();
               write_npy(file.string(), {map.size(0), map.size(1)},
                         {map.data_ptr<float>(), static_cast<size_t>(map.numel())});
             }
             progress.advance();
           }
         });
  }

  void evaluation(const RunStep& run) {
    spdlog::info("{}: {}", recipe_.name, run.name);
    const std::string out = path(run.name);
    const auto lock = enter_folder(out, {"rows.jsonl", "results.json"}, "an evaluation", false);
    const auto target = load_classifier(resolved(run.target), {}, context_);
    auto explainer = explainer_for(resolved(run.explainer), *target, context_, resolved(run.encoder));
    const auto data = slice(open_dataset(resolved_data(run.choice.data)), slice_of(run.choice));
    EvaluateOptions options;
    options.methods.clear();
    for (const auto& method : run.methods) options.methods.push_back(resolved(method));
    const MethodContext by{*target, explainer ? &*explainer : nullptr};
    options.methods = chosen_methods(options.methods, by);
    options.metrics = run.metrics;
    options.protocol = run.protocol;
    options.explained = run.explained;
    options.timing_runs = run.timing_runs;
    options.images = 0;
    Evaluation e = evaluate(by, *data, options, out, context_);
    e.settings["version"] = options_.version;
    write_results(e, out);
    add_rows(run, e.summary, target->info().name);
    if (fs::exists(out + "/curves.png") && !e.summary.rows.empty() && !e.summary.rows[0].curves.empty() &&
        recipe_.name.starts_with("curves")) {
      fs::copy_file(out + "/curves.svg", path(run.name + ".svg"), fs::copy_options::overwrite_existing);
      outcome_.figures.push_back({run.name + ".svg", "curves of " + run.name});
    }
    outcome_.facts.push_back(fmt::format(
        "{}: {} images of {} (every {} of the first {}), protocol {}, seed {}.", run.name,
        e.summary.images.size(), without_folders(run.choice.data),
        std::max<int64_t>(1, run.choice.of / run.choice.images), run.choice.of, run.protocol, context_.seed));
  }

  void column(const std::string& name, int better) {
    if (std::none_of(outcome_.columns.begin(), outcome_.columns.end(),
                     [&](auto& c) { return c.name == name; }))
      outcome_.columns.push_back({name, better});
  }

  void add_rows(const RunStep& run, const Summary& summary, const std::string& target) {
    for (const auto& metric : summary.metrics)
      if (run.show.empty() || std::find(run.show.begin(), run.show.end(), metric.name) != run.show.end())
        column(metric.name, metric.higher_is_better ? 1 : -1);
    const std::string names = fmt::format("{}", fmt::join(summary.images, "\n"));
    const std::string image_set = sha256_of_bytes(std::as_bytes(std::span(names)));
    for (const auto& own : summary.rows) {
      OutcomeRow row;
      row.image_set = image_set;
      row.block = run.block.empty() ? without_folders(target) : run.block;
      row.explained = own.explained;
      row.paper = run.paper;
      const auto at = std::find(summary.methods.begin(), summary.methods.end(), own.method);
      const auto n = static_cast<size_t>(at - summary.methods.begin());
      row.row = run.rows.size() > n ? run.rows[n] : own.method;
      row.images = static_cast<int64_t>(summary.images.size());
      row.passes = text_from_passes(own.passes);
      if (own.timing.runs > 0) row.seconds = own.timing.seconds;
      for (const auto& [name, metric] : own.metrics) row.found[name] = {metric.value, metric.per_image};
      if (run.break_even)
        for (const auto& one : summary.break_even)
          if (one.slower == own.method) {
            const std::string title = "maps until " + one.method + " pays";
            column(title, 0);
            row.found[title] = {{one.maps, one.maps, one.maps}};
          }
      outcome_.rows.push_back(std::move(row));
    }
  }

  void sheet(const SheetStep& step) {
    const auto target = load_classifier(resolved(step.target), {}, context_);
    auto explainer = explainer_for(resolved(step.explainer), *target, context_);
    const auto data = open_dataset(resolved_data(step.data));
    const auto names = data->class_names();
    const std::string photos = path(step.name) + "/photos";
    make_directories(photos);
    std::vector<std::string> files;
    for (const int i : step.images) {
      if (i < 0 || i >= data->size()) continue;
      const int label = data->label(i);
      const bool named = label >= 0 && label < static_cast<int>(names.size());
      files.push_back(
          fmt::format("{}/{:05}_{}.png", photos, i, named ? names[label] : std::to_string(label)));
      write_png(files.back(), data->image(i));
    }
    if (files.empty()) throw input_error("{}: expected images to show, found none", step.name);
    CompareOptions options;
    options.methods = step.methods;
    options.wanted = step.wanted;
    options.out = path(step.name);
    options.together = true;
    options.overwrite = true;
    compare(
        {*target, explainer ? &*explainer : nullptr}, files, options, [](const Compared&) {}, context_);
    const std::string file = step.name + ".png";
    fs::copy_file(fs::path(options.out) / "compare.png", path(file), fs::copy_options::overwrite_existing);
    outcome_.figures.push_back({file, step.title.empty() ? step.name : step.title});
  }

  void soft_masks(const SoftMasksStep& step) {
    const auto target = load_classifier(resolved(step.target), {}, context_);
    auto explainer = explainer_for("", *target, context_);
    const auto data = open_dataset(step.data);
    const Tensor pixels = input_from_image(data->image(step.image), target->info().input)
                              .unsqueeze(0)
                              .to(torch_device(context_));
    const auto method = make_method("aha", {*target, explainer ? &*explainer : nullptr});
    const Tensor map =
        method->attribute(pixels, target->logits(pixels).argmax(1), image_streams(pixels), context_)
            .maps[0]
            .cpu()
            .contiguous();
    const Image image = image_from_tensor(pixels[0].cpu());
    write_png(path(step.name + ".png"), soft_masks_image(step, image, map, context_, outcome_));
    outcome_.figures.push_back({step.name + ".png", "soft top-k masks"});
    outcome_.facts.push_back(fmt::format("{} of {}, {} x {} regions; scores of {} with a range of {:.1f}.",
                                         data->id(step.image), step.data, step.grid, step.grid,
                                         explainer ? "its bundled explainer" : "no explainer",
                                         (map.max() - map.min()).item<double>()));
  }

  void chart(const ChartStep& step) {
    write(step.name + ".svg", chart_svg(step, recipe_, outcome_));
    outcome_.figures.push_back({step.name + ".svg", step.title});
  }

  const Recipe& recipe_;
  const ExperimentOptions& options_;
  const Context& context_;
  fs::path folder_;
  std::map<std::string, std::string> made_;  // by step: of what it was made
  Outcome outcome_;
};

std::string bundled_data(const std::string& data) {
  return data.starts_with("cifar10") ? "cifar10:sample" : data;
}

}  // namespace

Fields fields(ExperimentOptions& o) {
  return Fields()
      .add("out", o.out, "folder of the results; the same call continues there")
      .add("quick", o.quick, "two images and two steps of training: a test, its figures mean nothing")
      .add("images", o.images, "images of each evaluation; 0 = as the recipe says")
      .range(0, 1e9)
      .add("data", o.data, "evaluation images instead of the recipe's")
      .add("target", o.target, "the classifier instead of the recipe's")
      .add("explainer", o.explainer, "a trained explainer of --target; default: the bundled one");
}

Recipe adapted(Recipe r, const ExperimentOptions& o) {
  const auto data = [&](std::string& own) {
    if (!o.data.empty() && !is_made(own)) own = o.data;
    if (o.quick) own = bundled_data(own);
  };
  const auto target = [&](std::string& own, std::string* explainer = nullptr) {
    if (o.target.empty() || is_made(own)) return;
    own = o.target;
    if (explainer && !is_made(*explainer)) *explainer = o.explainer;
  };
  const auto choice = [&](ImageChoice& c) {
    data(c.data);
    if (o.images > 0) c.images = o.images;
    if (o.quick) c.images = std::min(c.images, kQuickImages), c.of = std::min<int64_t>(c.of, 100);
    c.of = std::max(c.of, c.images);
  };
  for (auto& s : r.discs)
    if (o.quick) s.data = bundled_data(s.data), s.images = kQuickDiscs, s.skip = 0;
  for (auto& s : r.fits)
    if (o.quick) s.options["max-steps"] = kQuickSteps, s.options["batch-size"] = 16, s.options["epochs"] = 1;
  for (auto& s : r.trains) {
    target(s.target);
    if (!o.quick) continue;
    s.data = bundled_data(s.data);
    s.images = kQuickTraining;
    s.options["max-steps"] = kQuickSteps, s.options["epochs"] = 1;
    s.options["holdout"] = 4, s.options["search"] = false;
  }
  for (auto& s : r.maps) choice(s.choice), target(s.target);
  for (auto& s : r.runs) {
    choice(s.choice), target(s.target, &s.explainer);
    if (o.quick) s.timing_runs = std::min(s.timing_runs, 1);
  }
  for (auto& s : r.sheets) {
    data(s.data), target(s.target, &s.explainer);
    if (o.quick) s.images.resize(std::min<size_t>(s.images.size(), kQuickImages));
  }
  for (auto& s : r.soft_masks) data(s.data), target(s.target);
  return r;
}

std::optional<std::string> missing(const Recipe& recipe, const Context& context) {
  std::set<std::string> data, targets;
  for (const auto& s : recipe.discs) data.insert(s.data);
  for (const auto& s : recipe.fits) data.insert(s.data), targets.insert(s.init);
  for (const auto& s : recipe.trains) data.insert(s.data), targets.insert(s.target);
  for (const auto& s : recipe.maps) data.insert(s.choice.data), targets.insert(s.target);
  for (const auto& s : recipe.runs) data.insert(s.choice.data), targets.insert(s.target);
  for (const auto& s : recipe.sheets) data.insert(s.data), targets.insert(s.target);
  for (const auto& s : recipe.soft_masks) data.insert(s.data), targets.insert(s.target);
  if (data.contains("") || targets.contains("")) return "needs " + recipe.needs;
  try {
    for (const auto& one : data)
      if (!is_made(one)) open_dataset(one);
    for (const auto& one : targets)
      if (!is_made(one)) load_classifier(one, {}, context);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInput) throw;
    return fmt::format("{}{}", recipe.needs.empty() ? "" : "needs " + recipe.needs + ": ", error.what());
  }
  return std::nullopt;
}

Outcome run_experiment(const Recipe& recipe, const ExperimentOptions& options, const Context& context) {
  return Experiment(recipe, options, context).run();
}

}  // namespace aha
