// The flags that say which classifier is meant, shared by every command that has a target.
#pragma once

#include <memory>
#include <optional>

#include "aha/base/context.h"
#include "aha/base/options.h"
#include "aha/models/catalog.h"
#include "aha/models/classifier.h"

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

// The explainer that `spec` names, or the bundled one that was trained for exactly this target; none where there is neither.
constexpr const char* kExplainerHelp = "a trained explainer: a bundled one or its directory; default: the bundled one of this target";
std::optional<LoadedExplainer> explainer_for(const std::string& spec, Classifier& target, const Context& context);

}  // namespace aha
