#include "aha/methods/path_integral.h"

#include <cmath>
#include <numbers>

#include "aha/attribution/attention_maps.h"
#include "aha/attribution/target_gradient.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

// Roots of the Legendre polynomial P_n by Newton's method, from [-1, 1] to [0, 1].
std::vector<PathPoint> gauss_legendre_points(int n) {
  std::vector<PathPoint> points(n);
  for (int i = 0; i < n; ++i) {
    double x = -std::cos(std::numbers::pi * (i + 0.75) / (n + 0.5)), slope = 0;
    for (int round = 0; round < 100; ++round) {
      double before = 1, now = x;  // P_{k-1}, P_k
      for (int k = 2; k <= n; ++k) {
        const double next = ((2 * k - 1) * x * now - (k - 1) * before) / k;
        before = now, now = next;
      }
      slope = n * (x * now - before) / (x * x - 1);
      const double by = now / slope;
      x -= by;
      if (std::abs(by) < 1e-15) break;
    }
    points[i] = {(1 + x) / 2, 1 / ((1 - x * x) * slope * slope)};
  }
  return points;
}

// All points of all images, image after image, at most `at_once` together: visit(points, first), where point
// i belongs to image (first + i) / path.size().
void walk_paths(const Tensor& x, const Tensor& baseline, const std::vector<PathPoint>& path, int64_t at_once,
                const std::function<void(const Tensor& points, int64_t first)>& visit) {
  const auto S = std::ssize(path), all = x.size(0) * S;
  const auto start = baseline.expand_as(x);
  for (int64_t first = 0; first < all; first += at_once) {
    std::vector<Tensor> points;
    for (int64_t i = first; i < std::min(all, first + at_once); ++i)
      points.push_back(start[i / S] + path[i % S].place * (x[i / S] - start[i / S]));
    visit(torch::stack(points), first);
  }
}

}  // namespace

std::vector<PathPoint> path_points(int count, const std::string& rule) {
  if (rule == "gauss-legendre") return gauss_legendre_points(count);
  std::vector<PathPoint> points;
  for (int i = 0; i < count; ++i)
    points.push_back({rule == "midpoint" ? (i + 0.5) / count
                      : count > 1        ? static_cast<double>(i) / (count - 1)
                                         : 1.0,
                      1.0 / count});
  return points;
}

Tensor integrated_gradient(const Tensor& x, const Tensor& baseline, const std::vector<PathPoint>& path,
                           const PathGradient& gradient) {
  constexpr int64_t kPointsAtOnce =
      16;  // libtorch keeps the activations of all of them for its backward pass
  const auto S = std::ssize(path);
  auto sum = torch::zeros_like(x);
  walk_paths(x, baseline, path, kPointsAtOnce, [&](const Tensor& points, int64_t first) {
    const auto images = torch::arange(first, first + points.size(0), torch::kInt64).div(S, "floor");
    const auto gradients = gradient(points, images.to(x.device()));
    for (int64_t i = 0; i < points.size(0); ++i)
      sum[(first + i) / S].add_(gradients[i], path[(first + i) % S].weight);
  });
  return (x - baseline) * sum;
}

Tensor integrated_attention_rows(Classifier& target, const Tensor& pixels, const Tensor& classes,
                                 const Tensor& baseline, const std::vector<PathPoint>& path,
                                 const Context& context) {
  constexpr int64_t kPathImagesAtOnce = 64;  // 39 MB of pixels at 224 x 224
  const auto S = std::ssize(path);
  AttentionVisit visit;
  visit.first_block = blocks_with_attention(target) - 1;
  std::vector<Tensor> rows(pixels.size(0) * S);  // (heads, T) each, before they are summed in their order
  walk_paths(pixels, baseline, path, kPathImagesAtOnce, [&](const Tensor& points, int64_t first) {
    context.cancel->check();
    const auto wanted =
        classes.repeat_interleave(S).narrow(0, first, points.size(0));  // (N), as the points are
    target.visit_attention(points, wanted, visit,
                           [&](int64_t image, int, const Tensor&, const Tensor& gradient) {
                             const OneThread one_thread;
                             rows[first + image] = gradient.select(1, 0).clone();
                           });
  });
  std::vector<Tensor> integrated;
  for (int64_t b = 0; b < pixels.size(0); ++b) {
    auto sum = torch::zeros_like(rows[b * S]);
    for (int64_t i = 0; i < S; ++i) sum.add_(rows[b * S + i], path[i].weight);
    integrated.push_back(integrated_row(sum));
  }
  return torch::stack(integrated);
}

}  // namespace aha
