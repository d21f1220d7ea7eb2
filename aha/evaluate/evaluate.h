// Many images, many methods, one table: the verb behind `aha eval`.
//
// An image is preprocessed once; its clean and fully replaced versions are asked once (image_batch.h); then
// every method explains it (map_maker.h) and every map is swept under every reference (map_rows.h). Rows are
// kept on disk as they are found (row_store.h) under a key that covers what they depend on (row_key.h): the
// same call continues, and whatever changes, exactly the rows that depend on it are made again. All random
// numbers depend on the seed and the image's id, so that neither the batch size nor an interruption changes a
// figure. An image that cannot be read, and a map that cannot be made, are left out and named with their
// reason.
#pragma once

#include <optional>

#include "aha/data/dataset.h"
#include "aha/evaluate/protocol.h"
#include "aha/evaluate/summary.h"
#include "aha/methods/method.h"
#include "aha/train/worker_group.h"

namespace aha {

struct EvaluateOptions {
  std::vector<std::string> methods = {"random", "center", "gradient", "ig"};
  std::vector<std::string> metrics;     // empty = the protocol's
  std::vector<std::string> references;  // empty = the protocol's
  std::string explained = "predicted";  // "predicted", "truth" or "both"
  std::string protocol = "paper";       // NAME or NAME:key=value
  ProtocolChanges changes;              // of its settings
  double training_seconds = 0;          // of the explainer, for break-even counts; 0 = what its card says
  std::string score = "probability";    // of the class: "probability", "logit", "log-odds"
  int images = 6;                       // shown in the report
  int timing_runs =
      10;  // timed maps per method after one to warm up; fewer where they take long; 0 = no timing
  bool keep_maps = false;  // of all images, for metrics that are asked for later
  bool strict = false;     // stop at the first image or map that fails
};
Fields fields(EvaluateOptions& options);

// An image of the report and the maps over it.
struct ShownImage {
  std::string id, file;
  std::string class_name = {};                   // that is explained
  double probability = 0;                        // of it; NaN where nobody asked
  std::map<std::string, std::string> maps = {};  // by method: .npy files
};

struct Evaluation {
  Summary summary;
  nlohmann::json settings;  // every fact that the figures depend on
  std::vector<ShownImage> shown;
  double seconds = 0;              // of this call
  int64_t target_evaluations = 0;  // of this call's sweeps
};

// `out` is the folder of the rows; OUT/maps gets the maps of the first images, or of all (map_store.h).
Evaluation evaluate(const MethodContext& explained_by, const Dataset& data, const EvaluateOptions& options,
                    const std::string& out, const Context& context);

// The same work shared by several processes, each with every n-th batch of images: the leader returns what
// evaluate() would, the others nothing. Any split gives the same figures.
std::optional<Evaluation> evaluate_together(const MethodContext& explained_by, const Dataset& data,
                                            const EvaluateOptions& options, const std::string& out,
                                            WorkerGroup& group, const Context& context);

}  // namespace aha
