// A map with what it took to make it and how good it is: what `explain` and `compare` show.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "aha/methods/method.h"
#include "aha/metrics/map_score.h"

namespace aha {

struct ScoredMap {
  Tensor map;  // (H, W) float32 on the CPU
  Attribution::Made made;
  double seconds = 0;             // of the map alone: no reading, no score
  std::optional<MapScore> score;  // absent where there were no references

  bool constant() const;  // it ranks nothing: its scores are those of the order of the pixels
};
// Adds the keys refine, loss (null where there was no step), passes, deletion, insertion, constant (only
// where it is) and seconds.
void add_to_json(nlohmann::ordered_json& json, const ScoredMap& map);
// Of a score under black, mean and blur: for each `top` and `bottom`, the probability with 0, 10, .. 90 % of
// the most and of the least important pixels removed.
nlohmann::ordered_json json_from_curves(const MapScore& score);

// One for each of pixels (B, 3, H, W), classes (B); `images` are their names. Work error where a map is not
// finite; a warning where it is constant.
std::vector<ScoredMap> scored_maps(Method& method, const std::string& spec, Classifier& target,
                                   const Tensor& pixels, const Tensor& classes,
                                   const std::vector<std::string>& images,
                                   const std::vector<Tensor>& references, const Context& context);

}  // namespace aha
