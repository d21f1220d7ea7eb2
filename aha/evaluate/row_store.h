// What evaluations in a folder have found so far, one row for each image, method and explained class, in
// OUT/rows.jsonl. Several processes that share an evaluation write a file each.
//
// Rows are found by their key (row_key.h), which covers everything their figures depend on: an evaluation
// reuses what fits it and makes the rest, whatever else the folder holds. Rows are appended as they are
// found: an interrupted evaluation loses at most the batch it was working on, and a half-written last line is
// dropped. Memory holds keys and where their lines are, about a tenth of the rows; a row that is asked for is
// read from its file.
#pragma once

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <nlohmann/json.hpp>

#include "aha/methods/method.h"
#include "aha/metrics/metric.h"

namespace aha {

struct Row {
  std::string key;
  std::string image, method;
  std::string explained;  // "predicted" or "truth"
  int64_t class_index = 0;
  std::string state = "ok";  // or why this map cannot be evaluated: "constant", or the reason of a failure
  double tie_rate = 0;
  std::map<std::string, SweepCurves> curves;  // by reference
  std::map<std::string, double>
      replaced;  // by reference: probability of the class on the fully replaced image
  Attribution::Made made;

  bool ok() const { return state == "ok"; }
  // A constant map is an answer, though one that ranks nothing.
  bool failed() const { return !ok() && state != "constant"; }
};
// Passes, steps and loss.
nlohmann::json json_from_made(const Attribution::Made& made);
Attribution::Made made_from_json(const nlohmann::json& json);
nlohmann::json json_from_row(const Row& row);
Row row_from_json(const nlohmann::json& json);

// What one group of metrics measured of a map (metrics/metric.h); stored under a key of its own.
struct ValuesRow {
  std::string key, image, method, explained;
  MetricValues measured;
};

// Batch 1, after a warm-up.
struct Timing {
  double seconds = 0;
  int runs = 0;
};

class RowStore {
 public:
  // Reads what all workers left there; writes OUT/rows.jsonl, a worker other than the first
  // OUT/rows.WORKER.jsonl.
  explicit RowStore(const std::string& folder, int worker = 0);

  enum class State : uint8_t { kMissing, kOk, kConstant, kFailed };
  State state(const std::string& key) const;
  bool has(const std::string& key) const { return state(key) != State::kMissing; }
  bool has_values(const std::string& key) const { return values_.contains(key); }
  std::optional<Row> find(const std::string& key) const;
  std::optional<MetricValues> values(const std::string& key) const;
  const Timing* timing(const std::string& key) const;
  size_t size() const { return rows_.size(); }
  // Whether the image, method and class have a row under any key.
  bool has_any(const std::string& image, const std::string& method, const std::string& explained) const;

  void add(std::vector<Row> rows);
  void add(const std::vector<ValuesRow>& rows);
  void add(const std::string& key, const std::string& method, const Timing& timing);

 private:
  // Of a line.
  struct Place {
    uint64_t begin = 0;
    uint32_t bytes = 0;
    uint16_t file = 0;  // of files_
    State state = State::kOk;
  };
  void read(const std::string& path, bool own);
  void append(const nlohmann::json& line);  // there after the next flush
  void flush();
  void note(const nlohmann::json& json, Place place);
  nlohmann::json line_at(const Place& place) const;

  std::string path_;
  std::vector<std::string> files_;               // with rows; the first is the own one
  std::unordered_map<std::string, Place> rows_;  // by key
  std::unordered_map<std::string, Place> values_;
  std::unordered_set<size_t> names_;       // hashes of image, method and class
  std::map<std::string, Timing> timings_;  // by key
  std::ofstream out_;
  uint64_t end_ = 0;  // of the own file
};

}  // namespace aha
