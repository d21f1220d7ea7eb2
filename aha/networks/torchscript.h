// Any TorchScript classifier as a target.
//
// The file's code is executed: not Python, but code all the same, so only trusted files belong here (a log
// line says so). The network is a black box with gradients to its input and without taps; what it leaves open
// is found by asking it (exported_classifier.h). The output may be a tensor, a tuple (its first element) or a
// dict (its "logits"). The preprocessing comes from preprocess.json inside the archive, from
// FILE.preprocess.json, or from preprocess.json, preprocessor_config.json (Hugging Face) or config.json
// (timm) in the same folder; overrides of the user win.
#pragma once

#include "aha/networks/classifier.h"

namespace aha {

// What can be said of a TorchScript file without running any of it.
struct ScriptSummary {
  int64_t storages = 0;            // of its tensors
  int64_t bytes = 0;               // of the file
  std::optional<InputSpec> input;  // where a preprocessing file comes with it
};
// Nothing where the file is none, or cannot be read.
std::optional<ScriptSummary> script_summary(const std::string& path);

std::unique_ptr<Classifier> load_script_classifier(const std::string& path, const LoadOptions& options,
                                                   const Context& context);

}  // namespace aha
