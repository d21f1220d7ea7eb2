// The verb behind `aha explain`: pictures in, maps out, each with the score of this very map.
//
// The story of one picture: read, resize, ask the target, choose the class, let the method make its map, remove and insert pixels in the map's order (metrics/sweep.h, rule
// `paper`, mean of three references), do the same with a random map so that the figures have a floor, write the files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "aha/base/context.h"
#include "aha/image/heatmap.h"
#include "aha/methods/method.h"
#include "aha/metrics/map_score.h"

namespace aha {

struct ExplainOptions {
  std::string method = "aha";      // a catalogue entry, "NAME:key=value:..."
  int refine = 0;                  // T of method aha
  std::string budget;              // "200ms", "1.5s": refine as far as the time allows; empty = no limit
  std::string wanted = "predicted";  // the class explained: predicted, an index or a name
  std::string out;                 // folder of the files; empty = nothing is written
  bool score = true;
  HeatOptions heat;
};
Fields fields(ExplainOptions& options);

struct Explanation {
  std::string image;
  int class_index = 0;
  std::string class_name;
  double probability = 0;
  std::string method;   // with its options
  int refine = 0;       // refinement steps asked for
  Tensor map;           // (H, W) float32
  double low = 0, high = 0;
  std::string map_file, heat_file, overlay_file, json_file;  // empty where nothing was written
  std::optional<MapScore> score, random;                     // of this map, of a random one
  nlohmann::json references;                                 // what the scores were taken with (perturb/reference.h)
  double seconds = 0;                                        // of the map alone: no reading, no score
};

// Calls `each` once a picture, in order, as soon as it is done. Decoding runs ahead; memory does not grow with the number of pictures.
void explain(const MethodContext& explained_by, const std::vector<std::string>& pictures, const ExplainOptions& options,
             const std::function<void(const Explanation&)>& each, const Context& context);

// The class a user means: an index, or a name of the target's (case and the list's further names after a comma do not matter). Input error that lists near names.
int class_from_text(const std::string& text, const ClassifierInfo& target);

// "200ms", "1.5s" or "200" (ms) -> milliseconds
double milliseconds_from_text(const std::string& text);

// The object `aha explain --json` prints for a picture.
nlohmann::ordered_json json_from(const Explanation& explanation);

}  // namespace aha
