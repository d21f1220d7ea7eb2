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

std::unique_ptr<Classifier> load_script_classifier(const std::string& path, const LoadOptions& options,
                                                   const Context& context);

}  // namespace aha
