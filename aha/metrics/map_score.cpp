#include "aha/metrics/map_score.h"

namespace aha {

std::vector<MapScore> score_maps(Classifier& target, const Tensor& pixels, const Tensor& maps,
                                 const Tensor& classes, const std::vector<Tensor>& references,
                                 const Context& context) {
  const SweepOptions options;
  const auto clean = logits_of(target, pixels, context);
  const auto order = hard_order(maps, options.ties).order;
  std::vector<MapScore> scores(static_cast<size_t>(pixels.size(0)));
  for (const auto& reference : references) {
    // The ten-point rule never asks for the fully replaced image.
    auto curves = sweep(target, pixels, reference, order, classes, {clean, clean}, options, context);
    for (size_t b = 0; b < scores.size(); ++b) {
      scores[b].deletion +=
          deletion_area(curves[b].top, options.rule) / static_cast<double>(references.size());
      scores[b].insertion +=
          insertion_area(curves[b].bottom, options.rule) / static_cast<double>(references.size());
      scores[b].curves.push_back(std::move(curves[b]));
    }
  }
  return scores;
}

}  // namespace aha
