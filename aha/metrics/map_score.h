// The score of one map, for verbs that show a map beside how good it is: deletion and insertion by the
// paper's ten-point rule, mean over the references given.
#pragma once

#include "aha/metrics/sweep.h"

namespace aha {

struct MapScore {
  double deletion = 0, insertion = 0;
  std::vector<SweepCurves> curves = {};  // one for each reference: ten points, 0..90 % removed
};

// pixels (B, 3, H, W), maps (B, H, W), classes (B), each reference (B, 3, H, W). Cost: 18 target evaluations
// an image and reference, and one for each image, in full batches.
std::vector<MapScore> score_maps(Classifier& target, const Tensor& pixels, const Tensor& maps,
                                 const Tensor& classes, const std::vector<Tensor>& references,
                                 const Context& context);
// The same of several maps of each image, each (B, H, W): one list for each of them. What they are asked in
// common is asked once, and their questions share batches.
std::vector<std::vector<MapScore>> score_maps(Classifier& target, const Tensor& pixels,
                                              const std::vector<Tensor>& maps, const Tensor& classes,
                                              const std::vector<Tensor>& references, const Context& context);

}  // namespace aha
