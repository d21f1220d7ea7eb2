#include "aha/metrics/mas.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aha/base/error.h"
#include "aha/metrics/curve.h"
#include "aha/metrics/sweep.h"

namespace aha {
namespace {

// From the clean image's 1 down to 0, or up from 0.
double straight_line(MasTest test, size_t i, size_t steps) {
  const double up = static_cast<double>(i) / static_cast<double>(steps);
  return test == MasTest::kInsertion ? up : 1 - up;
}

std::vector<double> monotone_response(MasTest test, const MasInput& input) {
  const double range = std::abs(input.clean - input.reference);
  const size_t steps = input.mass.size();
  const bool up = test == MasTest::kInsertion;
  std::vector<double> out;
  for (size_t i = 0; i <= steps; ++i) {
    const double r = range > 0 ? std::clamp((input.probabilities[i] - input.reference) / range, 0.0, 1.0)
                               : straight_line(test, i, steps);
    const double before = i > 0 ? out.back() : (up ? 0 : 1);
    out.push_back(up ? std::max(before, r) : std::min(before, r));
  }
  return out;
}

void scale_to_unit(std::vector<double>& curve, MasTest test) {
  const auto [low, high] = std::minmax_element(curve.begin(), curve.end());
  const double lowest = *low, range = *high - lowest;
  for (size_t i = 0; i < curve.size(); ++i)
    curve[i] = range > 0 ? (curve[i] - lowest) / range : straight_line(test, i, curve.size() - 1);
}

}  // namespace

MasCurve mas_curve(MasTest test, const MasInput& input) {
  const size_t steps = input.mass.size();
  if (steps < 1 || input.probabilities.size() != steps + 1)
    throw input_error("mas: expected a probability before and behind each of {} steps, found {}", steps,
                      input.probabilities.size());
  const double total = std::accumulate(input.mass.begin(), input.mass.end(), 0.0);
  if (!(total > 0)) throw input_error("mas: expected a map whose sum is above 0, found {}", total);
  const bool up = test == MasTest::kInsertion;
  MasCurve out;
  out.response = monotone_response(test, input);
  double inserted = 0;
  for (size_t i = 0; i <= steps; ++i) {
    const double density = up ? inserted / total : 1 - inserted / total;
    const double penalty = std::abs(out.response[i] - density);
    out.density.push_back(density);
    out.penalty.push_back(penalty);
    out.aligned.push_back(std::clamp(out.response[i] + (up ? -penalty : penalty), 0.0, 1.0));
    if (i < steps) inserted += input.mass[i];
  }
  scale_to_unit(out.aligned, test);
  out.rise = trapezoid(out.response);
  out.mas = trapezoid(out.aligned);
  return out;
}

MasSteps mas_steps(const Tensor& map, int64_t step_px) {
  check_shape(map, {-1, -1}, "map");
  const torch::NoGradGuard no_grad;
  const int64_t N = map.numel();
  MasSteps out;
  out.step = step_px > 0 ? step_px : map.size(1);
  out.mass.assign(static_cast<size_t>((N + out.step - 1) / out.step), 0);
  const Tensor order = hard_order(map.unsqueeze(0)).order[0];  // (N)
  out.ranks = ranks_of(order);
  const Tensor values = map.detach().to(torch::kCPU, torch::kFloat32).flatten().contiguous();
  for (int64_t rank = 0; rank < N; ++rank)
    out.mass[rank / out.step] += values.data_ptr<float>()[order.data_ptr<int64_t>()[rank]];
  return out;
}

MasInput mas_input(Classifier& target, MasTest test, const MasImage& image, const Tensor& map,
                   const Context& context, int64_t step_px) {
  constexpr int64_t kAtOnce = 32;
  const int64_t H = image.pixels.size(1), W = image.pixels.size(2);
  check_shape(image.reference, {3, H, W}, "reference");
  check_shape(map, {H, W}, "map");
  const torch::NoGradGuard no_grad;
  const MasSteps steps = mas_steps(map, step_px);
  const auto M = static_cast<int64_t>(steps.mass.size());
  const Tensor region = torch::div(steps.ranks, steps.step, "floor");  // the step at which a pixel comes
  const bool up = test == MasTest::kInsertion;
  MasInput out{{}, steps.mass, image.clean, image.reference_p};
  out.probabilities.push_back(up ? image.reference_p : image.clean);
  for (int64_t first = 1; first < M; first += kAtOnce) {
    context.cancel->check();
    const int64_t count = std::min(kAtOnce, M - first);
    Tensor keep = torch::full({1, count, M}, up ? 0.f : 1.f);
    for (int64_t i = 0; i < count; ++i) keep[0][i].slice(0, 0, first + i).fill_(up ? 1.f : 0.f);
    const PerturbedImages images{image.pixels.unsqueeze(0), image.reference.unsqueeze(0), region.view({H, W}),
                                 keep, torch::tensor({image.wanted}, torch::kInt64)};
    const Tensor scores = target.perturbed_scores(images, false).scores;  // (1, count)
    for (int64_t i = 0; i < count; ++i) out.probabilities.push_back(scores[0][i].item<double>());
  }
  out.probabilities.push_back(up ? image.clean : image.reference_p);
  return out;
}

}  // namespace aha
