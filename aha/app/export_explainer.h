// The verb behind `aha export`: an explainer as one ONNX file that needs no aha (explainer/explainer_onnx.h
// has its inputs and outputs). Where features or prior are the target's own, the target's forward pass is in
// the file, too.
#pragma once

#include <string>

#include "aha/explainer/explainer_catalog.h"

namespace aha {

struct ExportOptions {
  std::string out;                // FILE.onnx
  int opset = 17;                 // 13 to 17
  std::string precision = "f32";  // of the weights in the file: f32, f16
  bool overwrite = false;         // replace a file that this verb did not make
};
Fields fields(ExportOptions& options);

struct Exported {
  std::string file, target;  // target: empty where it is not in the file
  int64_t bytes = 0;
  int classes = 0, size = 0;  // of the images
};

// The spec of the model that this explainer was trained for, among the bundled ones, those that `aha get`
// brought and those beside it; empty where it needs none. Input error where it needs one that is not there.
// A target that is given stands.
std::string target_to_export(const std::string& explainer, const std::string& given = "");

// target_spec: what `target` was loaded from; both empty where there is none.
Exported export_explainer(const std::string& spec, LoadedExplainer& loaded, Classifier* target,
                          const std::string& target_spec, const ExportOptions& options);

}  // namespace aha
