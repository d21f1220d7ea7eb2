// The verb behind `aha experiment`: makes the steps of a recipe (recipe.h) with the verbs that users call
// (fit, train, eval, compare) and writes the experiment's table, figures and section.
//
//   OUT/NAME/STEP/            what a step made; STEP.json beside it says from which settings
//   OUT/NAME/table.md, table.csv, section.md, *.svg, *.png
//
// A second call continues: a finished training is not repeated unless its settings (or those of a step it
// uses) changed, an evaluation makes only the rows that are missing.
#pragma once

#include <optional>
#include <string>

#include "aha/base/context.h"
#include "aha/experiments/outcome.h"
#include "aha/experiments/recipe.h"

namespace aha {

struct ExperimentOptions {
  std::string out = "experiments";
  bool quick = false;     // two images of the bundled sample, two steps of training: a test of the machinery
  int64_t images = 0;     // of each evaluation; 0 = as the recipe says
  std::string data;       // instead of the recipe's evaluation images
  std::string target;     // instead of the recipe's targets
  std::string explainer;  // of that target; empty = the bundled one
  std::string version;    // of the program, for the settings of the results
};
Fields fields(ExperimentOptions& options);  // all but the version

// The recipe with what the options change.
Recipe adapted(Recipe recipe, const ExperimentOptions& options);

// What is absent (data, weights), in one line; nothing where the experiment can be run.
std::optional<std::string> missing(const Recipe& recipe, const Context& context);

// `recipe` is adapted already.
Outcome run_experiment(const Recipe& recipe, const ExperimentOptions& options, const Context& context);

}  // namespace aha
