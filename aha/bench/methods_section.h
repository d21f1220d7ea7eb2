// Milliseconds a map of attribution methods, in a batch and of one image alone, at the context's precision.
//
// The peer is the same method on the same network without its engine: everything it asks of the network then
// runs through eager libtorch in float32, with the libraries set up as aha does it, in the same process, one
// round each in turn.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/methods/method.h"

namespace aha {

struct MethodBenchOptions {
  bool long_list = false, peer = false;
  double seconds = 0.5;  // for each method
};

struct MethodTimes {
  double ms = 0;        // a map, in a batch
  double alone_ms = 0;  // a map of one image
};

struct MethodBenchRow {
  std::string network, method;
  int64_t batch = 0;
  int threads = 0;
  std::string precision, kernels;
  Passes passes;  // of one map
  MethodTimes times;
  std::optional<MethodTimes> peer;
};

// A line of bench/problems/methods.txt: "8 vit4 vit_mini_4 gradcam ig:steps=20".
struct MethodProblem {
  int64_t batch = 0;
  std::string network, architecture;
  std::vector<std::string> methods;
};
std::vector<MethodProblem> method_problems(bool with_long);

// context.batch_size = 0: the batch of each problem.
std::vector<MethodBenchRow> bench_methods(const MethodBenchOptions& options, const Context& context);

nlohmann::ordered_json json_from(const MethodBenchRow& row);
std::string table_from(const std::vector<MethodBenchRow>& rows);

}  // namespace aha
