#include "aha/experiments/recipe.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/shipped.h"
#include "aha/base/toml.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

Fields fields(FitStep& s) {
  return Fields()
      .add("name", s.name, "of the step")
      .add("init", s.init, "the model to fine-tune")
      .add("data", s.data, "images to learn from");
}

Fields fields(TrainStep& s) {
  return Fields()
      .add("name", s.name, "of the step")
      .add("target", s.target, "the classifier that is explained")
      .add("recipe", s.recipe, "settings that ship with the program")
      .add("data", s.data, "images to learn from")
      .add("images", s.images, "how many")
      .range(5, 1e9);
}

Fields fields(MapsStep& s) {
  return Fields()
      .add("name", s.name, "of the step")
      .add("target", s.target, "the classifier that is explained")
      .add("explainer", s.explainer, "of the method aha")
      .add("method", s.method, "that makes the maps")
      .nest("", fields(s.choice));
}

Fields fields(RunStep& s) {
  return Fields()
      .add("name", s.name, "of the step")
      .add("target", s.target, "the classifier that is explained")
      .add("explainer", s.explainer, "of the method aha; empty = the bundled one of this target")
      .add("encoder", s.encoder, "of the explainer")
      .add("block", s.block, "what its rows are compared within; empty = the target")
      .add("paper", s.paper, "the part of the paper's figures that stands beside them")
      .add("methods", s.methods, "methods")
      .add("rows", s.rows, "what they are called")
      .add("metrics", s.metrics, "metrics")
      .add("show", s.show, "columns; empty = all")
      .add("protocol", s.protocol, "protocol")
      .add("class", s.explained, "the class explained")
      .choices({"predicted", "truth", "both"})
      .add("timing-runs", s.timing_runs, "timed maps")
      .range(0, 1000)
      .add("break-even", s.break_even, "columns of break-even counts")
      .nest("", fields(s.choice));
}

Fields fields(SheetStep& s) {
  return Fields()
      .add("name", s.name, "of the step")
      .add("target", s.target, "the classifier that is explained")
      .add("explainer", s.explainer, "of the method aha")
      .add("title", s.title, "below the sheet")
      .add("methods", s.methods, "methods")
      .add("data", s.data, "data set")
      .add("class", s.wanted, "the class explained")
      .add("images", s.images, "indices");
}

Fields fields(SoftMasksStep& s) {
  return Fields()
      .add("name", s.name, "of the step")
      .add("target", s.target, "the classifier that is explained")
      .add("data", s.data, "data set")
      .add("image", s.image, "its index")
      .range(0, 1e9)
      .add("grid", s.grid, "regions a side")
      .range(2, 64)
      .add("taus", s.taus, "temperatures")
      .range(1e-3, 1e3)
      .add("noise", s.noise, "scale of the Gumbel noise")
      .range(0, 100)
      .add("shares", s.shares, "of the regions that are removed")
      .range(0, 1);
}

Fields fields(ChartStep& s) {
  return Fields()
      .add("name", s.name, "of the step")
      .add("title", s.title, "above the chart")
      .add("metric", s.metric, "upwards")
      .add("across", s.across, "what the rows are")
      .add("rows", s.rows, "across");
}

Fields fields(Claim& s) {
  return Fields()
      .add("says", s.says, "the sentence")
      .add("metric", s.metric, "metric")
      .add("kind", s.kind, "how it is checked")
      .choices({"rising", "above", "within", "times"})
      .add("row", s.row, "the row it is about")
      .add("rows", s.rows, "those it is compared with")
      .add("amount", s.amount, "difference or ratio")
      .range(0, 1e9);
}

nlohmann::json part(const nlohmann::json& json, const char* key, const nlohmann::json& otherwise,
                    const std::string& where) {
  if (!json.contains(key)) return otherwise;
  if (json[key].type() != otherwise.type())
    throw input_error("{}: {}: expected {}, found {}", where, key, otherwise.type_name(),
                      json[key].type_name());
  return json[key];
}

// `over`, with what `under` has beside it; tables of both are joined.
nlohmann::json joined(nlohmann::json under, const nlohmann::json& over) {
  for (const auto& [key, value] : over.items())
    under[key] = value.is_object() && under.contains(key) ? joined(under[key], value) : value;
  return under;
}

// All [[key]] of a file. Steps with `options` keep them as they are.
template <class Step>
std::vector<Step> steps_of(const nlohmann::json& json, const char* key, const std::string& where,
                           const char* shared = nullptr) {
  std::vector<Step> steps;
  const auto under = shared ? part(json, shared, nlohmann::json::object(), where) : nlohmann::json::object();
  for (const auto& one : part(json, key, nlohmann::json::array(), where)) {
    if (!one.is_object()) throw input_error("{}: expected [[{}]], found a list of values", where, key);
    nlohmann::json all = joined(under, one);
    Step step;
    const std::string here = fmt::format("{}: [[{}]]", where, key);
    if constexpr (requires { step.options; }) {
      step.options = part(all, "options", nlohmann::json::object(), here);
      all.erase("options");
    }
    set_all_from_json(fields(step), all, here);
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<PaperTable> paper_tables(const nlohmann::json& json, const std::string& where) {
  std::vector<PaperTable> tables;
  for (auto one : part(json, "paper", nlohmann::json::array(), where)) {
    PaperTable table;
    const std::string here = where + ": [[paper]]";
    const auto rows = part(one, "rows", nlohmann::json::object(), here);
    one.erase("rows");
    set_all_from_json(Fields()
                          .add("of", table.of, "the paper's target")
                          .add("class", table.explained, "the class explained")
                          .add("columns", table.columns, "metrics"),
                      one, here);
    for (const auto& [row, values] : rows.items()) {
      if (!values.is_array() || values.size() != table.columns.size() ||
          !std::all_of(values.begin(), values.end(), [](const auto& v) { return v.is_number(); }))
        throw input_error("{}: {}: expected {} numbers, one for each column, found {}", here, row,
                          table.columns.size(), values.dump());
      table.rows[row] = values.get<std::vector<double>>();
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

// Names of steps, in the order in which they are made.
void check_names(const Recipe& recipe, const std::string& where) {
  std::set<std::string> made;
  const auto used = [&](const std::string& text) {
    const size_t at = text.find("made:");
    if (at == std::string::npos) return;
    const std::string name = text.substr(at + 5);
    if (!made.contains(name))
      throw unknown_name_error(where + ": step", name, std::vector<std::string>(made.begin(), made.end()));
  };
  const auto make = [&](const std::string& name, const char* what) {
    if (name.empty() || name.find('/') != std::string::npos || name[0] == '.')
      throw input_error("{}: [[{}]]: expected a name without '/', found '{}'", where, what, name);
    if (!made.insert(name).second)
      throw input_error("{}: expected one step of each name, found two '{}'", where, name);
  };
  for (const auto& s : recipe.discs) make(s.name, "disc");
  for (const auto& s : recipe.fits) used(s.init), used(s.data), make(s.name, "fit");
  for (const auto& s : recipe.trains) used(s.target), used(s.data), make(s.name, "train");
  for (const auto& s : recipe.maps) used(s.target), used(s.explainer), make(s.name, "maps");
  for (const auto& s : recipe.runs) {
    used(s.target), used(s.explainer), used(s.choice.data);
    for (const auto& method : s.methods) used(method);
    if (!s.rows.empty() && s.rows.size() != s.methods.size())
      throw input_error("{}: [[run]] {}: expected {} rows, one for each method, found {}", where, s.name,
                        s.methods.size(), s.rows.size());
    make(s.name, "run");
  }
  for (const auto& s : recipe.sheets) used(s.target), used(s.data), make(s.name, "sheet");
  for (const auto& s : recipe.soft_masks) make(s.name, "soft-masks");
  for (const auto& s : recipe.charts) make(s.name, "chart");
}

std::string recipes_root() {
  return shipped({"AHA_RECIPES", "recipes", "recipes", "experiments/ORDER"});
}

}  // namespace

Fields fields(ImageChoice& c) {
  return Fields()
      .add("data", c.data, "data set; empty = the user's")
      .add("images", c.images, "how many images")
      .range(1, 1e9)
      .add("of", c.of, "of the first so many, evenly spaced")
      .range(1, 1e9);
}

Fields fields(DiscStep& s) {
  return Fields()
      .add("name", s.name, "of the step")
      .add("data", s.data, "images to draw on")
      .add("images", s.images, "how many are looked at")
      .range(1, 1e9)
      .add("skip", s.skip, "images before the first")
      .range(0, 1e9)
      .add("label", s.label, "class that gets the disc")
      .range(0, 1e6)
      .add("radius", s.radius, "of the disc, share of the shorter side")
      .range(0.01, 0.5)
      .add("keep", s.keep, "which images are kept")
      .choices({"all", "class", "others"});
}

Recipe recipe_from_json(const std::string& name, const nlohmann::json& json, const std::string& where) {
  Recipe r;
  r.name = name;
  r.discs = steps_of<DiscStep>(json, "disc", where);
  r.fits = steps_of<FitStep>(json, "fit", where);
  r.trains = steps_of<TrainStep>(json, "train", where, "every-train");
  r.maps = steps_of<MapsStep>(json, "maps", where);
  r.runs = steps_of<RunStep>(json, "run", where, "every-run");
  r.sheets = steps_of<SheetStep>(json, "sheet", where);
  r.soft_masks = steps_of<SoftMasksStep>(json, "soft-masks", where);
  r.charts = steps_of<ChartStep>(json, "chart", where);
  r.claims = steps_of<Claim>(json, "claim", where);
  r.paper = paper_tables(json, where);
  nlohmann::json rest = json;
  for (const char* key : {"disc", "fit", "train", "maps", "run", "sheet", "soft-masks", "chart", "claim",
                          "paper", "every-train", "every-run"})
    rest.erase(key);
  set_all_from_json(Fields()
                        .add("title", r.title, "of the section")
                        .add("summary", r.summary, "one sentence")
                        .add("reproduces", r.reproduces, "what of the paper")
                        .add("remark", r.remark, "what a reader should know of it")
                        .add("needs", r.needs, "what a user has to bring"),
                    rest, where);
  if (r.title.empty() || r.summary.empty())
    throw input_error("{}: expected a title and a summary, found none", where);
  check_names(r, where);
  return r;
}

std::vector<std::string> experiment_names() {
  std::istringstream order(read_file((fs::path(recipes_root()) / "experiments" / "ORDER").string()));
  std::vector<std::string> names;
  for (std::string name; order >> name;) names.push_back(name);
  return names;
}

Recipe experiment_named(const std::string& name) {
  const auto names = experiment_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw unknown_name_error("experiment", name, names);
  const std::string path = (fs::path(recipes_root()) / "experiments" / (name + ".toml")).string();
  return recipe_from_json(name, json_from_toml(path), path);
}

nlohmann::json shipped_recipe(const std::string& name) {
  return json_from_toml((fs::path(recipes_root()) / (name + ".toml")).string());
}

}  // namespace aha
