#include "aha/methods/rank_error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

namespace aha {
namespace {

// Equal values share the middle of their ranks.
void ranks_of(const std::vector<double>& values, std::vector<int64_t>& order, std::vector<double>& ranks) {
  const auto K = static_cast<int64_t>(values.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return values[a] < values[b]; });
  for (int64_t first = 0, last; first < K; first = last) {
    for (last = first + 1; last < K && values[order[last]] == values[order[first]];) ++last;
    for (int64_t i = first; i < last; ++i) ranks[order[i]] = 0.5 * static_cast<double>(first + last - 1);
  }
}

// Of ranks 0..K-1. 0 where one of them ranks nothing.
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double middle = 0.5 * static_cast<double>(a.size() - 1);
  double ab = 0, aa = 0, bb = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    ab += (a[k] - middle) * (b[k] - middle);
    aa += (a[k] - middle) * (a[k] - middle);
    bb += (b[k] - middle) * (b[k] - middle);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace

double rank_error(const Tensor& sums, const Tensor& weights) {
  const int64_t G = kMaskGroups, K = sums.size(1);
  check_shape(sums, {G, K}, "sums");
  const Tensor s = sums.contiguous(), w = weights.defined() ? weights.contiguous() : Tensor();
  const double *sum = s.data_ptr<double>(), *weight = w.defined() ? w.data_ptr<double>() : nullptr;
  std::vector<double> map(K), first(K), second(K);
  std::vector<int64_t> order(K);
  // The groups g for which popcount(g & cut) is odd, or even: rows of a Hadamard matrix.
  const auto ranks_of_half = [&](int64_t cut, int odd, std::vector<double>& ranks) {
    for (int64_t k = 0; k < K; ++k) {
      double above = 0, below = weight ? 0 : 1;
      for (int64_t g = 0; g < G; ++g) {
        if (std::popcount(static_cast<uint64_t>(g & cut)) % 2 != odd) continue;
        above += sum[g * K + k];
        if (weight) below += weight[g * K + k];
      }
      map[k] = below > 0 ? above / below : 0;
    }
    ranks_of(map, order, ranks);
  };
  double r = 0;
  for (int64_t cut = 1; cut < G; ++cut) {
    ranks_of_half(cut, 0, first);
    ranks_of_half(cut, 1, second);
    r += correlation(first, second) / static_cast<double>(G - 1);
  }
  r = std::max(r, 0.0);
  return std::sqrt(std::max(0.0, 1 - 2 * r / (1 + r)) / 12);
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
           "(sqrt((1 - rho) / 12), rho = correlation with an independent run); 0 = take all masks")
      .range(0, 0.3);
}

}  // namespace aha
