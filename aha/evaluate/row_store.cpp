#include "aha/evaluate/row_store.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

std::string file_of(int worker) {
  return worker == 0 ? "rows.jsonl" : fmt::format("rows.{}.jsonl", worker);
}

// Nine decimals: beyond what float32 networks know, and a third shorter than 17 digits.
std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = std::round(value * 1e9) / 1e9;
  return values;
}

}  // namespace

nlohmann::json json_from_made(const Attribution::Made& made) {
  nlohmann::json json = {{"forwards", made.passes.forwards}, {"backwards", made.passes.backwards}};
  if (made.steps > 0) json["refine"] = made.steps;
  if (std::isfinite(made.loss)) json["loss"] = made.loss;
  return json;
}

Attribution::Made made_from_json(const nlohmann::json& j) {
  return {{j.at("forwards"), j.at("backwards")}, j.value("refine", 0), j.value("loss", std::nan(""))};
}

nlohmann::json json_from_row(const Row& row) {
  nlohmann::json curves = nlohmann::json::object();
  for (const auto& [reference, c] : row.curves)
    curves[reference] = {
        {"top", c.top}, {"bottom", c.bottom}, {"top_hits", c.top_hits}, {"bottom_hits", c.bottom_hits}};
  nlohmann::json json = {
      {"key", row.key},           {"image", row.image}, {"method", row.method}, {"explained", row.explained},
      {"class", row.class_index}, {"state", row.state}, {"ties", row.tie_rate}, {"curves", curves},
      {"replaced", row.replaced}};
  json.update(json_from_made(row.made));
  return json;
}

Row row_from_json(const nlohmann::json& j) {
  Row row{j.at("key"),      j.at("image"),    j.at("method"), j.at("explained"),
          j.at("class"),    j.at("state"),    j.at("ties"),   {},
          j.at("replaced"), made_from_json(j)};
  for (const auto& [reference, c] : j.at("curves").items())
    row.curves[reference] = {c.at("top"), c.at("bottom"), c.at("top_hits"), c.at("bottom_hits")};
  return row;
}

RowStore::RowStore(const std::string& folder, int worker)
    : path_((fs::path(folder) / file_of(worker)).string()) {
  make_directories(folder);
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("rows.") && name.ends_with(".jsonl")) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) read(path, path == path_);
  if (!rows_.empty()) spdlog::info("{}: continues with {} rows", folder, rows_.size());
  out_.open(path_, std::ios::app | std::ios::binary);
  if (!out_) throw work_error("{}: cannot be written", path_);
}

void RowStore::read(const std::string& path, bool own) {
  const std::string text = read_file(path, uint64_t{1} << 36);
  size_t line = 0, end = 0, whole = 0;
  try {
    for (; (end = text.find('\n', whole)) != std::string::npos; whole = end + 1) {
      ++line;
      const auto json = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(whole),
                                              text.begin() + static_cast<std::ptrdiff_t>(end));
      if (!json.contains("key"))
        continue;  // of an earlier version of the program: nobody knows what it depends on
      if (json.contains("timing"))
        timings_[json.at("key")] = {json.at("seconds"), json.at("runs")};
      else if (json.contains("values"))
        values_[json.at("key")] = {json.at("values"), json.value("missing", "")};
      else
        keep(row_from_json(json));
    }
  } catch (const nlohmann::json::exception& error) {
    throw input_error("{}:{}: not a row of an evaluation: {}", path, line, printable(error.what()));
  }
  if (own && whole < text.size()) fs::resize_file(path, whole);
}

void RowStore::keep(Row row) {
  names_.insert({row.image, row.method, row.explained});
  rows_[row.key] = std::move(row);
}

const Row* RowStore::find(const std::string& key) const {
  const auto at = rows_.find(key);
  return at == rows_.end() ? nullptr : &at->second;
}

const MetricValues* RowStore::values(const std::string& key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

const Timing* RowStore::timing(const std::string& key) const {
  const auto at = timings_.find(key);
  return at == timings_.end() ? nullptr : &at->second;
}

bool RowStore::has_any(const std::string& image, const std::string& method,
                       const std::string& explained) const {
  return names_.contains({image, method, explained});
}

void RowStore::append(const std::string& lines) {
  out_ << lines << std::flush;
  if (!out_) throw work_error("{}: writing failed (disk full?)", path_);
}

void RowStore::add(std::vector<Row> rows) {
  std::string lines;
  for (Row& row : rows) {
    // Rounded before it is used: a continued evaluation and an uninterrupted one print the same figures.
    for (auto& [reference, c] : row.curves)
      c = {rounded(c.top), rounded(c.bottom), c.top_hits, c.bottom_hits};
    lines += json_from_row(row).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    keep(std::move(row));
  }
  append(lines);
}

void RowStore::add(const std::vector<ValuesRow>& rows) {
  std::string lines;
  for (const ValuesRow& row : rows) {
    nlohmann::json json = {{"key", row.key},
                           {"image", row.image},
                           {"method", row.method},
                           {"explained", row.explained},
                           {"values", row.measured.values}};
    if (!row.measured.missing.empty()) json["missing"] = row.measured.missing;
    lines += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    values_[row.key] = row.measured;
  }
  append(lines);
}

void RowStore::add(const std::string& key, const std::string& method, const Timing& timing) {
  append(nlohmann::json{{"key", key}, {"timing", method}, {"seconds", timing.seconds}, {"runs", timing.runs}}
             .dump() +
         "\n");
  timings_[key] = timing;
}

}  // namespace aha
