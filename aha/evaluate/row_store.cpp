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

size_t name_hash(const std::string& image, const std::string& method, const std::string& explained) {
  return std::hash<std::string>()(image + '\n' + method + '\n' + explained);
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
    : path_((fs::path(folder) / file_of(worker)).string()), files_{path_} {
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
  if (!own) files_.push_back(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw input_error("{}: cannot be read", path);
  Place place{0, 0, static_cast<uint16_t>(own ? 0 : files_.size() - 1)};
  size_t number = 0;
  try {
    for (std::string line; std::getline(in, line) && !in.eof(); place.begin += line.size() + 1) {
      ++number;
      place.bytes = static_cast<uint32_t>(line.size());
      const auto json = nlohmann::json::parse(line);
      // Without a key it is of an earlier version of the program: nobody knows what it depends on.
      if (json.contains("key")) note(json, place);
    }
  } catch (const nlohmann::json::exception& error) {
    throw input_error("{}:{}: not a row of an evaluation: {}", path, number, printable(error.what()));
  }
  in.close();
  if (!own) return;
  end_ = place.begin;
  if (fs::file_size(path) > end_) fs::resize_file(path, end_);
}

void RowStore::note(const nlohmann::json& json, Place place) {
  const std::string& key = json.at("key").get_ref<const std::string&>();
  if (json.contains("timing")) {
    timings_[key] = {json.at("seconds"), json.at("runs")};
  } else if (json.contains("values")) {
    values_[key] = place;
  } else {
    const std::string& state = json.at("state").get_ref<const std::string&>();
    place.state = state == "ok" ? State::kOk : state == "constant" ? State::kConstant : State::kFailed;
    rows_[key] = place;
    names_.insert(name_hash(json.at("image"), json.at("method"), json.at("explained")));
  }
}

nlohmann::json RowStore::line_at(const Place& place) const {
  const std::string& path = files_[place.file];
  std::string text(place.bytes, '\0');
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(place.begin));
  if (!in.read(text.data(), static_cast<std::streamsize>(text.size())))
    throw work_error("{}: expected {} bytes at {}, found fewer: was it changed?", path, place.bytes,
                     place.begin);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) throw work_error("{}: no row at {}: was it changed?", path, place.begin);
  return json;
}

RowStore::State RowStore::state(const std::string& key) const {
  const auto at = rows_.find(key);
  return at == rows_.end() ? State::kMissing : at->second.state;
}

std::optional<Row> RowStore::find(const std::string& key) const {
  const auto at = rows_.find(key);
  return at == rows_.end() ? std::nullopt : std::optional(row_from_json(line_at(at->second)));
}

std::optional<MetricValues> RowStore::values(const std::string& key) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return std::nullopt;
  const auto json = line_at(at->second);
  return MetricValues{json.at("values"), json.value("missing", "")};
}

const Timing* RowStore::timing(const std::string& key) const {
  const auto at = timings_.find(key);
  return at == timings_.end() ? nullptr : &at->second;
}

bool RowStore::has_any(const std::string& image, const std::string& method,
                       const std::string& explained) const {
  return names_.contains(name_hash(image, method, explained));
}

void RowStore::append(const nlohmann::json& json) {
  const std::string line = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  out_ << line << '\n';
  note(json, {end_, static_cast<uint32_t>(line.size())});
  end_ += line.size() + 1;
}

void RowStore::flush() {
  out_ << std::flush;
  if (!out_) throw work_error("{}: writing failed (disk full?)", path_);
}

void RowStore::add(std::vector<Row> rows) {
  for (Row& row : rows) {
    // Rounded before it is used: a continued evaluation and an uninterrupted one print the same figures.
    for (auto& [reference, c] : row.curves)
      c = {rounded(c.top), rounded(c.bottom), c.top_hits, c.bottom_hits};
    append(json_from_row(row));
  }
  flush();
}

void RowStore::add(const std::vector<ValuesRow>& rows) {
  for (const ValuesRow& row : rows) {
    auto values = row.measured.values;  // JSON has no infinity: such a value was not measured
    std::erase_if(values, [](const auto& one) { return !std::isfinite(one.second); });
    nlohmann::json json = {{"key", row.key},
                           {"image", row.image},
                           {"method", row.method},
                           {"explained", row.explained},
                           {"values", values}};
    if (!row.measured.missing.empty()) json["missing"] = row.measured.missing;
    append(json);
  }
  flush();
}

void RowStore::add(const std::string& key, const std::string& method, const Timing& timing) {
  append({{"key", key}, {"timing", method}, {"seconds", timing.seconds}, {"runs", timing.runs}});
  flush();
}

}  // namespace aha
