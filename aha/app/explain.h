// The verb behind `aha explain`: images in, maps out, each with the score of this map.
//
// The story of one image: read, resize, ask the target, choose the class, let the method make its map, remove
// and insert pixels in the map's order (metrics/sweep.h, rule `paper`, mean of three references), do the same
// with a random map so that the figures have a floor, write the files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "aha/app/chosen_class.h"
#include "aha/app/scored_map.h"
#include "aha/base/context.h"
#include "aha/image/box.h"
#include "aha/image/heatmap.h"
#include "aha/methods/method.h"

namespace aha {

struct ExplainOptions {
  std::string method = "aha";         // a catalog entry, "NAME:key=value:..."
  int refine = 0;                     // T of method aha; 0 = what `method` says
  std::string budget;                 // "200ms", "1.5s": refine as far as the time allows; empty = no limit
  std::string wanted = "predicted";   // the class explained: predicted, an index or a name
  std::vector<int64_t> classes = {};  // one for each image, instead; empty = as `wanted` says
  std::string out;                    // folder of the files; empty = nothing is written
  bool score = true;
  std::string size = "network";  // of STEM.heat.png and STEM.overlay.png: "network" or "original"
  bool sheet = true;             // STEM.sheet.png
  bool strict = false;           // stop at the first image that fails
  bool overwrite = false;        // replace files that this verb did not make
  HeatOptions heat;
};
Fields fields(ExplainOptions& options);

struct Explanation {
  std::string image;
  std::string error;  // why there is no map, and nothing of what follows; empty = there is one
  ChosenClass chosen;
  std::string method;              // as asked for
  ScoredMap scored;                // the map, the steps and passes it took, its score
  std::optional<MapScore> random;  // of a random map
  std::string map_file, heat_file, overlay_file, json_file;  // empty where nothing was written
  std::string sheet_file;                                    // empty where none was asked for
  Box seen;                                                  // the part of the photo that the map is of
  nlohmann::json references;         // what the scores were taken with (perturb/reference.h)
  std::string score_precision = {};  // of the forward passes behind the scores: f32, bf16
};

// The method that the options name, with its refinement and budget set.
std::unique_ptr<Method> method_of(const ExplainOptions& options, const MethodContext& explained_by);

// Images in memory: pixels (B, 3, H, W) on the context's device, `images` are their names. Writes nothing.
// Scores come from `scorer`, or from one of its own where there is none.
std::vector<Explanation> explain_pixels(const MethodContext& explained_by, Method& method,
                                        const Tensor& pixels, const std::vector<std::string>& images,
                                        const ExplainOptions& options, const Context& context,
                                        Scorer* scorer = nullptr);

// Calls `each` once for each image, in order, as soon as it is done. Decoding runs ahead; memory does not
// grow with the number of images. An image that cannot be read or explained is named on stderr; a strict
// call, and one for a single image, ends there.
void explain(const MethodContext& explained_by, const std::vector<std::string>& images,
             const ExplainOptions& options, const std::function<void(const Explanation&)>& each,
             const Context& context);

// "200ms", "1.5s" -> milliseconds
double milliseconds_from_text(const std::string& text);

// The object `aha explain --json` prints for an image.
nlohmann::ordered_json json_from(const Explanation& explanation);

}  // namespace aha
