// The flags that say which classifier is meant, shared by every command that has a target.
#pragma once

#include <memory>
#include <optional>

#include "aha/base/context.h"
#include "aha/base/options.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/networks/classifier.h"

namespace aha {

struct TargetOptions {
  std::string target;
  int input_size = 0;
  std::vector<double> mean, std;
};
Fields fields(TargetOptions& options);

// The model's spec and what the user says about it.
std::pair<std::string, LoadOptions> named_target(const TargetOptions& options);
std::unique_ptr<Classifier> load_target(const TargetOptions& options, const Context& context);

constexpr const char* kExplainerHelp =
    "a trained explainer: a bundled one or its directory; default: the bundled one of this target";
constexpr const char* kEncoderHelp =
    "weights of the explainer's own encoder where they are not beside its card or among the bundled models";

}  // namespace aha
