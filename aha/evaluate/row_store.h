// What an evaluation has found so far, one row per image, method and explained class, in OUT/rows.jsonl.
//
// The first line holds the settings that all rows share; a store is continued only under the same ones, so
// that no table ever mixes two evaluations. An explainer is not among them: with another one its rows are
// made again, those of the methods beside it stay. Rows are appended as they are found: an interrupted
// evaluation loses at most the batch it was working on, and a half-written last line is dropped.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "aha/metrics/sweep.h"

namespace aha {

struct Row {
  std::string image, method;
  std::string explained;  // "predicted" or "truth"
  int64_t class_index = 0;
  std::string state = "ok";  // or why this map cannot be evaluated: "constant", "not finite"
  double tie_rate = 0;
  std::map<std::string, SweepCurves> curves;  // by reference
  std::map<std::string, double>
      replaced;          // by reference: probability of the class on the fully replaced image
  bool learned = false;  // an explainer's
};
nlohmann::json json_from_row(const Row& row);
Row row_from_json(const nlohmann::json& json);

// Batch 1, after a warm-up.
struct Timing {
  double seconds = 0;
  int runs = 0;
  bool learned = false;  // an explainer's
};

class RowStore {
 public:
  // Input error where the folder holds rows of other settings: it names the first that differs.
  RowStore(const std::string& folder, const nlohmann::json& settings);

  // Rows of explainers are this one's from now on; those of another are forgotten.
  void take_explainer(const nlohmann::json& explainer);

  const Row* find(const std::string& image, const std::string& method, const std::string& explained) const;
  const Timing* timing(const std::string& method) const;
  size_t size() const { return rows_.size(); }

  void add(std::vector<Row> rows);
  void add(const std::string& method, const Timing& timing);

 private:
  void read(const nlohmann::json& settings);
  void append(const std::string& lines);
  void forget_learned();

  std::string path_;
  nlohmann::json explainer_;  // whose the learned rows are; null = there are none
  std::map<std::tuple<std::string, std::string, std::string>, Row> rows_;
  std::map<std::string, Timing> timings_;
  std::ofstream out_;
};

}  // namespace aha
