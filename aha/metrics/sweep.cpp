#include "aha/metrics/sweep.h"

namespace aha {
namespace {

enum class Removal { kTop, kBottom };

Tensor plain_image(const Tensor& image) {
  return image.to(torch::kCPU, torch::kFloat32).contiguous();
}

}  // namespace

Tensor ranks_of(const Tensor& order) {
  const Tensor flat = order.to(torch::kCPU).contiguous();
  Tensor ranks = torch::empty({flat.numel()}, torch::kInt32);
  for (int64_t rank = 0; rank < flat.numel(); ++rank)
    ranks.data_ptr<int32_t>()[flat.data_ptr<int64_t>()[rank]] = static_cast<int32_t>(rank);
  return ranks;
}

ScoreQueue::Write with_ranks_replaced(Tensor pixels, Tensor reference, Tensor ranks, int64_t first,
                                      int64_t last) {
  return [=](float* to) {
    const int64_t N = ranks.numel();
    const int32_t* rank = ranks.data_ptr<int32_t>();
    for (int c = 0; c < 3; ++c) {
      const float *own = pixels.data_ptr<float>() + c * N, *other = reference.data_ptr<float>() + c * N;
      for (int64_t i = 0; i < N; ++i) to[c * N + i] = rank[i] >= first && rank[i] < last ? other[i] : own[i];
    }
  };
}

std::shared_ptr<const std::vector<SweepCurves>> ask_sweep(ScoreQueue& questions, const SweepImage& image,
                                                          const SweepOptions& options) {
  const int64_t H = image.pixels.size(1), W = image.pixels.size(2);
  check_shape(image.pixels, {3, -1, -1}, "pixels");
  check_shape(image.reference, {3, H, W}, "reference");
  check_shape(image.order, {H * W}, "order");
  const auto points = static_cast<size_t>(points_of(options.rule, options.steps));
  const auto curves = std::make_shared<std::vector<SweepCurves>>(image.classes.size());
  for (SweepCurves& one : *curves)
    for (auto* curve : {&one.top, &one.bottom, &one.top_hits, &one.bottom_hits}) curve->resize(points);
  const auto put = [curves, classes = image.classes, score = options.score](Removal removal, size_t point,
                                                                            std::span<const double> logits) {
    for (size_t c = 0; c < classes.size(); ++c) {
      SweepCurves& one = (*curves)[c];
      const bool top = removal == Removal::kTop;
      (top ? one.top : one.bottom)[point] = score_of(logits, classes[c], score);
      (top ? one.top_hits : one.bottom_hits)[point] = is_top(logits, classes[c]) ? 1 : 0;
    }
  };
  const Tensor pixels = plain_image(image.pixels), reference = plain_image(image.reference),
               ranks = ranks_of(image.order);
  for (const Removal removal : {Removal::kTop, Removal::kBottom}) {
    put(removal, 0, values_of(image.clean));
    if (points > static_cast<size_t>(options.steps)) put(removal, points - 1, values_of(image.replaced));
    for (int point = 1; point < options.steps; ++point) {
      const int64_t N = H * W, count = removed_pixels(point, options.steps, N);
      questions.ask(removal == Removal::kTop ? with_ranks_replaced(pixels, reference, ranks, 0, count)
                                             : with_ranks_replaced(pixels, reference, ranks, N - count, N),
                    [=](std::span<const double> logits) { put(removal, point, logits); });
    }
  }
  return curves;
}

std::vector<SweepCurves> sweep(Classifier& target, const Tensor& pixels, const Tensor& reference,
                               const Tensor& order, const Tensor& classes, const SweepEnds& ends,
                               const SweepOptions& options, const Context& context) {
  const auto B = pixels.size(0);
  check_shape(pixels, {-1, 3, -1, -1}, "pixels");
  check_shape(reference, {B, 3, pixels.size(2), pixels.size(3)}, "reference");
  check_shape(classes, {B}, "classes");
  ScoreQueue questions(target, pixels.size(2), pixels.size(3), context);
  std::vector<std::shared_ptr<const std::vector<SweepCurves>>> asked;
  for (int64_t b = 0; b < B; ++b)
    asked.push_back(ask_sweep(
        questions,
        {pixels[b], reference[b], order[b], ends.clean[b], ends.replaced[b], {classes[b].item<int64_t>()}},
        options));
  questions.flush();
  std::vector<SweepCurves> out;
  for (const auto& one : asked) out.push_back(one->front());
  return out;
}

}  // namespace aha
