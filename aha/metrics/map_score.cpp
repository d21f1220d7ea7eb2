#include "aha/metrics/map_score.h"

namespace aha {

std::vector<MapScore> score_maps(Classifier& target, const Tensor& pixels, const Tensor& maps,
                                 const Tensor& classes, const std::vector<Tensor>& references,
                                 const Context& context) {
  return score_maps(target, pixels, std::vector<Tensor>{maps}, classes, references, context)[0];
}

std::vector<std::vector<MapScore>> score_maps(Classifier& target, const Tensor& pixels,
                                              const std::vector<Tensor>& maps, const Tensor& classes,
                                              const std::vector<Tensor>& references, const Context& context) {
  const SweepOptions options;
  const int64_t B = pixels.size(0);
  const auto clean = logits_of(target, pixels, context);  // (B, C)
  ScoreQueue questions(target, pixels.size(2), pixels.size(3), context);
  using Asked = std::shared_ptr<const std::vector<SweepCurves>>;
  std::vector<std::vector<std::vector<Asked>>> asked(maps.size());  // map, image, reference
  for (size_t m = 0; m < maps.size(); ++m) {
    const auto order = hard_order(maps[m], options.ties).order;
    for (int64_t b = 0; b < B; ++b) {
      auto& of_image = asked[m].emplace_back();
      for (const auto& reference : references)
        // The ten-point rule never asks for the fully replaced image.
        of_image.push_back(ask_sweep(
            questions, {pixels[b], reference[b], order[b], clean[b], clean[b], {classes[b].item<int64_t>()}},
            options));
    }
  }
  questions.flush();
  std::vector<std::vector<MapScore>> scores(maps.size(), std::vector<MapScore>(static_cast<size_t>(B)));
  for (size_t m = 0; m < maps.size(); ++m)
    for (int64_t b = 0; b < B; ++b)
      for (const auto& curves : asked[m][b]) {
        MapScore& score = scores[m][b];
        score.deletion +=
            deletion_area(curves->front().top, options.rule) / static_cast<double>(references.size());
        score.insertion +=
            insertion_area(curves->front().bottom, options.rule) / static_cast<double>(references.size());
        score.curves.push_back(curves->front());
      }
  return scores;
}

}  // namespace aha
