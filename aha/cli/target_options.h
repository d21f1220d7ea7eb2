// The flags that say which classifier is meant, shared by every command that has a target.
#pragma once

#include <memory>

#include "aha/base/context.h"
#include "aha/base/options.h"
#include "aha/models/classifier.h"

namespace aha {

struct TargetOptions {
  std::string target;
  int input_size = 0;
  std::vector<double> mean, std;
};
Fields fields(TargetOptions& options);

std::unique_ptr<Classifier> load_target(const TargetOptions& options, const Context& context);

}  // namespace aha
