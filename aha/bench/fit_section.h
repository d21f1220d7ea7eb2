// A step of `aha fit`: a classifier forward, cross-entropy, and back to all its weights, at both precisions.
// The peer is the same network on eager libtorch, float32, in the same process. Updating the weights is not
// part of it: both sides do that alike.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "aha/base/context.h"

namespace aha {

struct FitBenchOptions {
  bool long_list = false, peer = false;
  double seconds = 1;  // for each problem and precision
};

struct FitRow {
  std::string name;
  int64_t batch = 0;
  int threads = 0;
  std::string precision, kernels;
  double ms = 0;  // an image
  std::optional<double> peer_ms;
};

// context.batch_size = 0: the batch of each problem.
std::vector<FitRow> bench_fit(const FitBenchOptions& options, const Context& context);

nlohmann::ordered_json json_from(const FitRow& row);
std::string table_from(const std::vector<FitRow>& rows);

}  // namespace aha
