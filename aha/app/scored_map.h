// A map with what it took to make it and how good it is: what `explain` and `compare` show.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>

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

// One for each of pixels (B, 3, H, W), classes (B), without scores; `images` are their names. Work error
// where a map is not finite; a warning where it is constant.
std::vector<ScoredMap> made_maps(Method& method, const std::string& spec, const Tensor& pixels,
                                 const Tensor& classes, const std::vector<std::string>& images,
                                 const Context& context);

// Who is asked for scores: the target itself, or its bf16 copy where that is faster.
class Scorer {
 public:
  Scorer(Classifier& target, const Context& context);
  // With a bf16 copy that stays elsewhere; null = the target itself.
  Scorer(Classifier& target, Classifier* copy, const Context& context);
  const char* precision() const;  // "bf16", "f32"

  // Sets the scores of several maps of each image, one list for each method. What they have in common is
  // asked once, and the questions fill batches together. Each reference (B, 3, H, W).
  void score(std::span<std::vector<ScoredMap>* const> methods, const Tensor& pixels, const Tensor& classes,
             const std::vector<Tensor>& references);

 private:
  std::unique_ptr<Classifier> own_copy_;
  Classifier* copy_;
  Classifier& asked_;
  const Context& context_;
};

}  // namespace aha
