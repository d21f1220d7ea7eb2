// The verb behind `aha inspect`: a weight file, a TorchScript or ONNX file, a model directory or a bundled
// model described for a person and as JSON. Nothing of a file is run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "aha/base/options.h"

namespace aha {

struct InspectOptions {
  bool tensors = false;   // list every tensor
  bool identity = false;  // hash the canonical weights (networks/fingerprint.h)
};
Fields fields(InspectOptions& options);

struct Inspection {
  nlohmann::json json;
  std::string text;
};
Inspection inspect(const std::string& what, const InspectOptions& options);

}  // namespace aha
