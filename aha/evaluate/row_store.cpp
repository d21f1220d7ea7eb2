#include "aha/evaluate/row_store.h"

#include <cmath>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "rows.jsonl";

std::string first_difference(const nlohmann::json& found, const nlohmann::json& wanted) {
  for (const auto& [key, value] : wanted.items())
    if (!found.contains(key) || found[key] != value)
      return fmt::format("{}: {} there, {} here", key,
                         found.contains(key) ? printable(found[key].dump()) : "nothing",
                         printable(value.dump()));
  for (const auto& [key, value] : found.items())
    if (!wanted.contains(key)) return fmt::format("{}: {} there, nothing here", key, printable(value.dump()));
  return "settings";
}

// Nine decimals: beyond what float32 networks know, and a third shorter than 17 digits.
std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = std::round(value * 1e9) / 1e9;
  return values;
}

}  // namespace

nlohmann::json json_from_row(const Row& row) {
  nlohmann::json curves = nlohmann::json::object();
  for (const auto& [reference, c] : row.curves)
    curves[reference] = {
        {"top", c.top}, {"bottom", c.bottom}, {"top_hits", c.top_hits}, {"bottom_hits", c.bottom_hits}};
  nlohmann::json json = {{"image", row.image},       {"method", row.method},    {"explained", row.explained},
                         {"class", row.class_index}, {"state", row.state},      {"ties", row.tie_rate},
                         {"curves", curves},         {"replaced", row.replaced}};
  if (row.learned) json["learned"] = true;
  return json;
}

Row row_from_json(const nlohmann::json& j) {
  Row row{j.at("image"),
          j.at("method"),
          j.at("explained"),
          j.at("class"),
          j.at("state"),
          j.at("ties"),
          {},
          j.at("replaced"),
          j.value("learned", false)};
  for (const auto& [reference, c] : j.at("curves").items())
    row.curves[reference] = {c.at("top"), c.at("bottom"), c.at("top_hits"), c.at("bottom_hits")};
  return row;
}

RowStore::RowStore(const std::string& folder, const nlohmann::json& settings)
    : path_((fs::path(folder) / kFile).string()) {
  make_directories(folder);
  if (fs::exists(path_) && fs::file_size(path_) > 0)
    read(settings);
  else
    write_file_atomically(path_, nlohmann::json{{"settings", settings}}.dump() + "\n");
  out_.open(path_, std::ios::app | std::ios::binary);
  if (!out_) throw work_error("{}: cannot be written", path_);
}

void RowStore::read(const nlohmann::json& settings) {
  const std::string text = read_file(path_, uint64_t{1} << 36);
  size_t line = 0, end = 0;
  try {
    for (size_t start = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
      const auto json = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(start),
                                              text.begin() + static_cast<std::ptrdiff_t>(end));
      if (++line == 1) {
        if (json.at("settings") != settings)
          throw input_error(
              "{}: holds an evaluation with other settings ({}); expected the same settings or another --out",
              path_, first_difference(json.at("settings"), settings));
      } else if (json.contains("timing")) {
        timings_[json.at("timing")] = {json.at("seconds"), json.at("runs"), json.value("learned", false)};
      } else if (json.contains("explainer")) {
        forget_learned();
        explainer_ = json.at("explainer");
      } else {
        Row row = row_from_json(json);
        rows_[{row.image, row.method, row.explained}] = std::move(row);
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw input_error("{}:{}: not a row of an evaluation: {}", path_, line + 1, printable(error.what()));
  }
  const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (whole == 0) throw input_error("{}: expected the rows of an evaluation, found no whole line", path_);
  if (whole < text.size()) fs::resize_file(path_, whole);
  spdlog::info("{}: continues with {} rows", path_, rows_.size());
}

void RowStore::forget_learned() {
  std::erase_if(rows_, [](const auto& item) { return item.second.learned; });
  std::erase_if(timings_, [](const auto& item) { return item.second.learned; });
}

void RowStore::take_explainer(const nlohmann::json& explainer) {
  if (explainer == explainer_) return;
  const size_t before = rows_.size();
  forget_learned();
  if (rows_.size() < before)
    spdlog::info("{}: another explainer; its {} rows are made again", path_, before - rows_.size());
  append(nlohmann::json{{"explainer", explainer}}.dump() + "\n");
  explainer_ = explainer;
}

const Row* RowStore::find(const std::string& image, const std::string& method,
                          const std::string& explained) const {
  const auto at = rows_.find({image, method, explained});
  return at == rows_.end() ? nullptr : &at->second;
}

const Timing* RowStore::timing(const std::string& method) const {
  const auto at = timings_.find(method);
  return at == timings_.end() ? nullptr : &at->second;
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
    rows_[{row.image, row.method, row.explained}] = std::move(row);
  }
  append(lines);
}

void RowStore::add(const std::string& method, const Timing& timing) {
  nlohmann::json json = {{"timing", method}, {"seconds", timing.seconds}, {"runs", timing.runs}};
  if (timing.learned) json["learned"] = true;
  append(json.dump() + "\n");
  timings_[method] = timing;
}

}  // namespace aha
