#include "aha/app/scrub.h"

#include "aha/base/error.h"
#include "aha/metrics/sweep.h"
#include "aha/perturb/reference.h"

namespace aha {
namespace {

Tensor plain(const Tensor& image) {  // (1, 3, H, W) -> (3, H, W) contiguous on the CPU
  return image[0].to(torch::kCPU, torch::kFloat32).contiguous();
}

Tensor checked_map(const Tensor& map, const Tensor& pixels) {
  check_shape(map, {pixels.size(2), pixels.size(3)}, "map");
  if (!map.isfinite().all().item<bool>()) throw input_error("map: expected finite values, found others");
  return map;
}

ScrubAnswer ask(Classifier& target, const ScrubImage& image, const ScoreQueue::Write& write,
                const Context& context) {
  const auto& info = target.info();
  if (image.class_index < 0 || image.class_index >= info.classes)
    throw input_error("class {}: expected 0..{} for {}", image.class_index, info.classes - 1, info.name);
  ScrubAnswer answer;
  ScoreQueue questions(target, image.pixels.size(2), image.pixels.size(3), context);
  questions.ask(write, [&](std::span<const double> logits) {
    answer.probability = score_of(logits, image.class_index);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    answer.predicted = class_at(static_cast<int>(best), score_of(logits, best), info);
  });
  questions.flush();
  if (!std::isfinite(answer.probability))
    throw work_error("{}: the target gives no finite probability", info.name);
  return answer;
}

}  // namespace

ScrubMode scrub_mode_from_text(const std::string& text) {
  const std::vector<std::string> names = {"delete", "insert"};
  if (text == names[0]) return ScrubMode::kDelete;
  if (text == names[1]) return ScrubMode::kInsert;
  throw unknown_name_error("mode", text, names);
}

Tensor scrub_reference(const Tensor& pixels, const std::string& name, const ClassifierInfo& target) {
  return reference_image(pixels, reference_from_name(name), with_mean_color({}, target.mean_color));
}

ScrubAnswer scrub(Classifier& target, const ScrubImage& image, const Tensor& map, ScrubMode mode, int64_t k,
                  const Context& context) {
  const int64_t N = image.pixels.size(2) * image.pixels.size(3);
  if (k < 0 || k > N) throw input_error("k: expected 0..{} pixels, found {}", N, k);
  const Tensor order = hard_order(checked_map(map, image.pixels).unsqueeze(0)).order[0];  // (N)
  const Tensor reference = plain(scrub_reference(image.pixels, image.reference, target.info()));
  const bool deletes = mode == ScrubMode::kDelete;
  return ask(
      target, image,
      with_ranks_replaced(plain(image.pixels), reference, ranks_of(order), deletes ? 0 : k, deletes ? k : N),
      context);
}

ScrubAnswer scrub(Classifier& target, const ScrubImage& image, const Tensor& keep, const Context& context) {
  check_shape(keep, {image.pixels.size(2), image.pixels.size(3)}, "keep");
  const Tensor reference = plain(scrub_reference(image.pixels, image.reference, target.info()));
  return ask(target, image,
             blended(plain(image.pixels), reference, keep.to(torch::kCPU, torch::kFloat32).contiguous()),
             context);
}

ScrubCurve scrub_curve(Classifier& target, const ScrubImage& image, const Tensor& map, int steps,
                       const Context& context) {
  if (steps < 2 || steps > 1000) throw input_error("steps: expected 2..1000, found {}", steps);
  SweepOptions options;
  options.steps = steps;
  options.rule = AreaRule::kTrapezoid;                                                 // both ends
  const Tensor order = hard_order(checked_map(map, image.pixels).unsqueeze(0)).order;  // (1, N)
  const Tensor reference = scrub_reference(image.pixels, image.reference, target.info());
  const SweepEnds ends{logits_of(target, image.pixels, context), logits_of(target, reference, context)};
  const auto curves = sweep(target, image.pixels, reference, order,
                            torch::full({1}, image.class_index, torch::kInt64), ends, options, context)[0];
  ScrubCurve out;
  for (int i = 0; i <= steps; ++i)
    out.k.push_back(removed_pixels(i, steps, image.pixels.size(2) * image.pixels.size(3)));
  out.deletion = curves.top;
  out.insertion.assign(curves.bottom.rbegin(), curves.bottom.rend());
  return out;
}

nlohmann::ordered_json json_from(const ScrubAnswer& answer) {
  return {{"probability", answer.probability}, {"predicted", json_from(answer.predicted)}};
}

nlohmann::ordered_json json_from(const ScrubCurve& curve) {
  return {{"k", curve.k}, {"deletion", curve.deletion}, {"insertion", curve.insertion}};
}

}  // namespace aha
