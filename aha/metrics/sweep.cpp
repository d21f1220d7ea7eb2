#include "aha/metrics/sweep.h"

#include "aha/perturb/perturbation_sequence.h"

namespace aha {
namespace {

// Images a call of the target: enough to fill two cores, 19 MB at 224 pixels.
constexpr int64_t kChunk = 32;

int64_t chunk_of(const Context& context) {
  return context.batch_size > 0 ? context.batch_size : kChunk;
}

struct Answer {
  double probability, hit;
};

Answer answer(const Tensor& probs, int64_t wanted) {  // (C), double
  return {probs[wanted].item<double>(), probs.argmax().item<int64_t>() == wanted ? 1.0 : 0.0};
}

}  // namespace

Tensor probabilities(Classifier& target, const Tensor& pixels, const Context& context) {
  const torch::NoGradGuard no_grad;
  std::vector<Tensor> parts;
  for (const auto& chunk : pixels.split(chunk_of(context)))
    parts.push_back(torch::softmax(target.logits(chunk).to(torch::kFloat64), 1).cpu());
  return torch::cat(parts);
}

std::vector<SweepCurves> sweep(Classifier& target, const Tensor& pixels, const Tensor& reference,
                               const Tensor& order, const Tensor& classes, const SweepEnds& ends,
                               const SweepOptions& options, const Context& context) {
  const torch::NoGradGuard no_grad;
  const auto B = pixels.size(0);
  check_shape(pixels, {-1, 3, -1, -1}, "pixels");
  check_shape(reference, {B, 3, pixels.size(2), pixels.size(3)}, "reference");
  check_shape(order, {B, pixels.size(2) * pixels.size(3)}, "order");
  check_shape(classes, {B}, "classes");
  const auto points = static_cast<size_t>(points_of(options.rule, options.steps));
  const auto wanted = classes.cpu();
  const auto class_of = [&](int64_t b) { return wanted[b].item<int64_t>(); };

  std::vector<SweepCurves> out(B);
  const auto put = [&](int64_t b, bool top, size_t point, const Answer& a) {
    (top ? out[b].top : out[b].bottom)[point] = a.probability;
    (top ? out[b].top_hits : out[b].bottom_hits)[point] = a.hit;
  };
  for (int64_t b = 0; b < B; ++b) {
    for (auto* curve : {&out[b].top, &out[b].bottom, &out[b].top_hits, &out[b].bottom_hits})
      curve->resize(points);
    for (const bool top : {true, false}) {
      put(b, top, 0, answer(ends.clean[b], class_of(b)));
      if (points > static_cast<size_t>(options.steps))
        put(b, top, points - 1, answer(ends.replaced[b], class_of(b)));
    }
  }

  std::vector<int64_t> counts;
  for (int point = 1; point < options.steps; ++point)
    counts.push_back(removed_pixels(point, options.steps, pixels.size(2) * pixels.size(3)));
  const int64_t at_once =
      std::max<int64_t>(1, chunk_of(context) / std::max<int64_t>(1, B));  // points of all images
  for (const bool top : {true, false}) {
    const HardSequence sequence(pixels, reference, order, counts, top ? Removal::kTop : Removal::kBottom);
    for (int64_t first = 0; first < sequence.steps(); first += at_once) {
      context.cancel->check();
      const int64_t count = std::min(at_once, sequence.steps() - first);
      const auto probs =
          probabilities(target, sequence.images(first, count).flatten(0, 1), context);  // (B * count, C)
      for (int64_t b = 0; b < B; ++b)
        for (int64_t i = 0; i < count; ++i)
          put(b, top, static_cast<size_t>(first + i + 1), answer(probs[b * count + i], class_of(b)));
    }
  }
  return out;
}

}  // namespace aha
