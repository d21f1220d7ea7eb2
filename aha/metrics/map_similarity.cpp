#include "aha/metrics/map_similarity.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aha/base/error.h"

namespace aha {
namespace {

// Ranks from 0, minus their mean.
std::vector<double> centered_ranks(const Tensor& map) {
  const Tensor values = map.detach().to(torch::kCPU, torch::kFloat32).contiguous();
  const float* v = values.data_ptr<float>();
  const int64_t n = values.numel();
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return v[a] < v[b]; });
  std::vector<double> ranks(n);
  for (int64_t first = 0, last; first < n; first = last) {
    for (last = first + 1; last < n && v[order[last]] == v[order[first]];) ++last;
    for (int64_t i = first; i < last; ++i)
      ranks[order[i]] = static_cast<double>(first + last - 1) / 2 - static_cast<double>(n - 1) / 2;
  }
  return ranks;
}

}  // namespace

double spearman(const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes())
    throw input_error("maps: expected the same size, found {} and {} values", a.numel(), b.numel());
  const auto x = centered_ranks(a), y = centered_ranks(b);
  const double xx = std::inner_product(x.begin(), x.end(), x.begin(), 0.0),
               yy = std::inner_product(y.begin(), y.end(), y.begin(), 0.0),
               xy = std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace aha
