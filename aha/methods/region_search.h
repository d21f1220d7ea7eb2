// What the methods that search on an image share: its regions, and the target's answers while some of them
// are hidden.
#pragma once

#include <vector>

#include "aha/base/context.h"
#include "aha/networks/classifier.h"
#include "aha/perturb/region_grid.h"

namespace aha {

// Regions a side: the patch grid of a transformer; else 14, or 8 where the input has 64 pixels or less. A
// transformer is asked once (its first block).
int64_t region_side(Classifier& target);

// Probability of the class on each of these images, (n, 3, H, W) -> (n) float32 on the CPU. The same bits
// alone, in any batch and with any number of threads.
Tensor class_probabilities(Classifier& target, const Tensor& images, int64_t wanted);

// One image whose regions may show each of several references instead.
class HiddenRegions {
 public:
  // image and references (3, H, W) in [0, 1]
  HiddenRegions(Classifier& target, const Tensor& image, const std::vector<Tensor>& references,
                const RegionGrid& grid, int64_t wanted);

  int64_t K() const { return grid_.K(); }
  // shown (S, K), 1 = the image, 0 = the reference -> probability of the class, (R, S). Cost: R S forwards.
  Tensor probabilities(const Tensor& shown, const Context& context);
  int64_t forwards() const { return forwards_; }

 private:
  Classifier& target_;
  RegionGrid grid_;
  PerturbedImages images_;
  int64_t forwards_ = 0;
};

}  // namespace aha
