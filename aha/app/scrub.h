// The questions a person asks of a map: what does the target say of the image when these pixels are gone?
//
// A map orders the pixels (ranking/hard_order.h, ties by index). Deleting k replaces the k most important by
// the reference; inserting k shows them alone on the reference. A mask names the pixels itself.
#pragma once

#include <string>
#include <vector>

#include "aha/app/chosen_class.h"
#include "aha/base/context.h"

namespace aha {

enum class ScrubMode { kDelete, kInsert };
ScrubMode scrub_mode_from_text(const std::string& text);  // "delete", "insert"

// What is asked about: pixels (1, 3, H, W) in [0, 1], the class, and what removed pixels become: "black",
// "mean" or "blur".
struct ScrubImage {
  Tensor pixels;
  int class_index = 0;
  std::string reference = "black";
};

struct ScrubAnswer {
  double probability = 0;  // of the class
  ChosenClass predicted;   // what the target says now
};
nlohmann::ordered_json json_from(const ScrubAnswer& answer);

// map (H, W), k in 0..H * W. One forward pass.
ScrubAnswer scrub(Classifier& target, const ScrubImage& image, const Tensor& map, ScrubMode mode, int64_t k,
                  const Context& context);
// keep (H, W): 1 = the pixel is visible, 0 = it shows the reference.
ScrubAnswer scrub(Classifier& target, const ScrubImage& image, const Tensor& keep, const Context& context);

// The whole curve: point i has k[i] = i / steps of the pixels deleted, or inserted, both ends among them.
// 2 steps forward passes.
struct ScrubCurve {
  std::vector<int64_t> k;
  std::vector<double> deletion, insertion;  // probability of the class
};
nlohmann::ordered_json json_from(const ScrubCurve& curve);
ScrubCurve scrub_curve(Classifier& target, const ScrubImage& image, const Tensor& map, int steps,
                       const Context& context);

// (1, 3, H, W)
Tensor scrub_reference(const Tensor& pixels, const std::string& name, const ClassifierInfo& target);

}  // namespace aha
