// The verb behind `aha compare`: methods side by side on one sheet for each image, each map with its score.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aha/app/chosen_class.h"
#include "aha/app/scored_map.h"
#include "aha/base/context.h"
#include "aha/image/heatmap.h"
#include "aha/methods/method.h"

namespace aha {

struct CompareOptions {
  std::vector<std::string> methods;  // chosen_methods(): "all" = all that fit, empty = the quick ones
  std::string wanted = "predicted";  // the class explained: predicted, an index or a name
  std::string out = ".";             // folder of the sheets; empty = nothing is written
  bool together = false;             // one sheet compare.png, a block for each image, not one sheet each
  bool strict = false;               // stop at the first image that fails
  bool overwrite = false;            // replace files that this verb did not make
  HeatOptions heat;
};
Fields fields(CompareOptions& options);

constexpr size_t kMostTogether = 32;  // images on one sheet

struct ComparedMethod {
  std::string method;
  ScoredMap scored;  // by the paper's ten-point rule, mean over black, mean and blur
};

struct Compared {
  std::string image;
  std::string error;  // why there are no maps, and nothing of what follows; empty = there are
  ChosenClass chosen;
  std::vector<ComparedMethod> methods;  // in the order asked for
  nlohmann::json references;            // what the scores were taken with (perturb/reference.h)
  std::string score_precision;          // of the forward passes behind them: f32, bf16
  std::string file;                     // of the sheet; empty where none is written
};

// One image in memory: pixels (1, 3, H, W) on the context's device, `image` is its name. `specs` name the
// methods. Scores come from `scorer`, or from one of its own where there is none.
Compared compare_pixels(const MethodContext& by, const Tensor& pixels, const std::string& image,
                        const std::vector<std::string>& specs, const std::string& wanted,
                        const std::vector<std::unique_ptr<Method>>& methods, const Context& context,
                        Scorer* scorer = nullptr);

// Calls `each` once for each image, in order, as soon as it is done. An image that cannot be read or
// explained is named on stderr; a strict call, and one for a single image, ends there.
void compare(const MethodContext& by, const std::vector<std::string>& images, const CompareOptions& options,
             const std::function<void(const Compared&)>& each, const Context& context);

// The object `aha compare --json` prints for an image.
nlohmann::ordered_json json_from(const Compared& compared);

}  // namespace aha
