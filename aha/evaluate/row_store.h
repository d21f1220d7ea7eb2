// What evaluations in a folder have found so far, one row for each image, method and explained class, in
// OUT/rows.jsonl. Several processes that share an evaluation write a file each.
//
// Rows are found by their key (row_key.h), which covers everything their figures depend on: an evaluation
// reuses what fits it and makes the rest, whatever else the folder holds. Rows are appended as they are
// found: an interrupted evaluation loses at most the batch it was working on, and a half-written last line is
// dropped.
#pragma once

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <tuple>
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

  const Row* find(const std::string& key) const;
  const MetricValues* values(const std::string& key) const;
  const Timing* timing(const std::string& key) const;
  size_t size() const { return rows_.size(); }
  // Whether the image, method and class have a row under any key.
  bool has_any(const std::string& image, const std::string& method, const std::string& explained) const;

  void add(std::vector<Row> rows);
  void add(const std::vector<ValuesRow>& rows);
  void add(const std::string& key, const std::string& method, const Timing& timing);

 private:
  void read(const std::string& path, bool own);
  void append(const std::string& lines);
  void keep(Row row);

  std::string path_;
  std::map<std::string, Row> rows_;  // by key
  std::set<std::tuple<std::string, std::string, std::string>> names_;
  std::map<std::string, MetricValues> values_;  // by key
  std::map<std::string, Timing> timings_;       // by key
  std::ofstream out_;
};

}  // namespace aha
