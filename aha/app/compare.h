// The verb behind `aha compare`: one image, all methods side by side, each with the score of its map.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aha/app/chosen_class.h"
#include "aha/app/scored_map.h"
#include "aha/base/context.h"
#include "aha/image/image.h"
#include "aha/methods/method.h"

namespace aha {

struct CompareOptions {
  std::vector<std::string> methods = {"gradient", "ig", "rise:masks=500"};
  std::string wanted = "predicted";  // the class explained: predicted, an index or a name
  std::string out = ".";             // folder of STEM.compare.png; empty = nothing is written
};
Fields fields(CompareOptions& options);

struct ComparedMethod {
  std::string method;
  ScoredMap scored;  // by the paper's ten-point rule, mean over black, mean and blur
};

struct Compared {
  std::string image;
  ChosenClass chosen;
  std::vector<ComparedMethod> methods;  // in the order asked for
  nlohmann::json references;            // what the scores were taken with (perturb/reference.h)
  Image sheet;                          // the image and the maps over it, labeled
  std::string file;                     // of the sheet; empty where it was not written
};

// Calls `each` once for each image, in order, as soon as it is done.
void compare(const MethodContext& by, const std::vector<std::string>& images, const CompareOptions& options,
             const std::function<void(const Compared&)>& each, const Context& context);

// The object `aha compare --json` prints for an image.
nlohmann::ordered_json json_from(const Compared& compared);

}  // namespace aha
