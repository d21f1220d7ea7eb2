#include "aha/methods/rank_error.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace aha {
namespace {

// Ranks from 0 as shares of K; equal values share the middle of their ranks.
void ranks_of(const double* values, int64_t K, std::vector<int64_t>& order, double* ranks) {
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return values[a] < values[b]; });
  for (int64_t first = 0, last; first < K; first = last) {
    for (last = first + 1; last < K && values[order[last]] == values[order[first]];) ++last;
    const double middle = 0.5 * static_cast<double>(first + last - 1) / static_cast<double>(K);
    for (int64_t i = first; i < last; ++i) ranks[order[i]] = middle;
  }
}

}  // namespace

double rank_error(const Tensor& sums, const Tensor& weights) {
  const int64_t G = sums.size(0), K = sums.size(1);
  const Tensor s = sums.contiguous(), w = weights.defined() ? weights.contiguous() : Tensor();
  const double *sum = s.data_ptr<double>(), *weight = w.defined() ? w.data_ptr<double>() : nullptr;
  std::vector<double> map(K), ranks(G * K);
  std::vector<int64_t> order(K);
  for (int64_t left_out = 0; left_out < G; ++left_out) {
    for (int64_t k = 0; k < K; ++k) {
      double above = 0, below = weight ? 0 : 1;
      for (int64_t g = 0; g < G; ++g) {
        if (g == left_out) continue;
        above += sum[g * K + k];
        if (weight) below += weight[g * K + k];
      }
      map[k] = below > 0 ? above / below : 0;
    }
    ranks_of(map.data(), K, order, &ranks[left_out * K]);
  }
  double total = 0;
  for (int64_t k = 0; k < K; ++k) {
    double mean = 0, squares = 0;
    for (int64_t g = 0; g < G; ++g) mean += ranks[g * K + k] / static_cast<double>(G);
    for (int64_t g = 0; g < G; ++g) squares += (ranks[g * K + k] - mean) * (ranks[g * K + k] - mean);
    total += squares * static_cast<double>(G - 1) / static_cast<double>(G);
  }
  return std::sqrt(total / static_cast<double>(K));
}

bool UntilSure::reached(int64_t masks, const std::function<double()>& error) {
  if (wanted_ == 0 || masks < next_) return false;
  next_ = masks + masks / 4;
  return error() <= wanted_;
}

void add_until(Fields& fields, double& until) {
  fields
      .add("until", until,
           "stop as soon as the standard error of a region's rank, as a share of all ranks, is this or less "
           "(jackknife over 16 groups of masks); 0 = take all masks")
      .range(0, 0.3);
}

}  // namespace aha
