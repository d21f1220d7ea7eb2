// Many images, many methods, one table: the verb behind `aha eval`.
//
// An image is preprocessed once; its clean and fully replaced versions are asked once; then every method
// explains it and every map is swept under every reference (metrics/sweep.h). Rows are kept on disk as they
// are found (row_store.h): the same call continues, more methods or images extend it, another explainer
// leaves the rows of other methods, other settings are refused. All random numbers depend on the seed and the
// image's name, so that neither the batch size nor an interruption changes a figure.
#pragma once

#include "aha/data/dataset.h"
#include "aha/evaluate/protocol.h"
#include "aha/evaluate/summary.h"
#include "aha/methods/method.h"

namespace aha {

struct EvaluateOptions {
  std::vector<std::string> methods = {"random", "center", "gradient", "ig"};
  std::vector<std::string> metrics = {"ins-del", "neg-pos"};
  std::vector<std::string> references;  // empty = the protocol's
  std::string explained = "predicted";  // "predicted", "truth" or "both"
  std::string protocol = "paper";
  int images = 6;  // shown in the report
  int timing_runs =
      10;  // timed maps per method after one to warm up; fewer where they take long; 0 = no timing
};
Fields fields(EvaluateOptions& options);

struct Evaluation {
  Summary summary;
  nlohmann::json settings;         // every fact that the figures depend on
  double seconds = 0;              // of this call
  int64_t target_evaluations = 0;  // of this call's sweeps
};

// `out` is the folder of the rows; OUT/maps gets the maps of the first images.
Evaluation evaluate(const MethodContext& explained_by, const Dataset& data, const EvaluateOptions& options,
                    const std::string& out, const Context& context);

// Where evaluate() leaves the maps and images that the report shows.
std::string map_file(const std::string& out, int64_t index, const std::string& method);
std::string image_file(const std::string& out, int64_t index);

}  // namespace aha
