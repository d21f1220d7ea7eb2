// How much of the engine reaches an evaluation: perturbed images per second through a whole run (images, maps
// of cheap methods, sweeps, rows on disk, summary, tables and report) beside the same target's bare forward
// passes in the batches that the sweeps have. The peer is the same run with the target on eager libtorch.
// With one thread the time is that of its CPU, so that others on the machine do not matter; the reading of
// images, which other threads do, is not in it.
//
// Who runs an evaluation is given: bench and evaluate do not know each other.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "aha/networks/classifier.h"

namespace aha {

struct EvalRunOptions {
  bool long_list = false, peer = false;
  // Evaluates the target on so many images and returns how many perturbed images it was asked about.
  std::function<int64_t(Classifier& target, int64_t images)> run;
};

struct EvalRunRow {
  std::string name, precision;
  int64_t images = 0, perturbed = 0;  // of a run
  int threads = 0;
  double per_second = 0;          // perturbed images of the whole run
  double forward_per_second = 0;  // images of the bare target
  std::optional<double> peer_per_second = {};
};

std::vector<EvalRunRow> bench_eval_run(const EvalRunOptions& options, const Context& context);

nlohmann::ordered_json json_from(const EvalRunRow& row);
std::string table_from(const std::vector<EvalRunRow>& rows);

}  // namespace aha
