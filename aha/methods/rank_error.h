// How sure the ranking of a map is that was averaged over random masks, and when that is enough.
//
// The rank error of a map is the standard error of a region's rank, as a share of the number of regions, root
// mean square over the regions: 0.02 of 784 cells = another run with as many masks of its own moves a cell by
// 16 places, times sqrt(2) for the error of both. Pure noise has 1 / sqrt(12) = 0.29. The Spearman
// correlation with such another run is about 1 - 12 error^2: 0.995 at 0.02, 0.97 at 0.05.
//
// It is estimated from one run by the delete-a-group jackknife: mask k belongs to group k mod G; the map is
// made G times with one group left out, r_g being the ranks of its regions / K;
//
//   error^2 = mean over regions of (G - 1) / G * sum_g (r_g - mean of the r_g)^2
//
// Methods that take many masks offer it as the option `until`.
#pragma once

#include <cstdint>
#include <functional>

#include "aha/base/options.h"
#include "aha/tensor/tensor.h"

namespace aha {

constexpr int64_t kMaskGroups = 16;

// sums, weights: (G, K) float64; the map of some groups is the sum of their sums over the sum of their
// weights, 0 where that is 0. weights undefined = 1.
double rank_error(const Tensor& sums, const Tensor& weights = {});

// Looks after 64 masks and then whenever there are a quarter more: few looks, so that stopping at the first
// lucky one hardly matters.
class UntilSure {
 public:
  explicit UntilSure(double wanted) : wanted_(wanted) {}  // 0 = never
  bool reached(int64_t masks, const std::function<double()>& error);

 private:
  double wanted_;
  int64_t next_ = 64;
};

void add_until(Fields& fields, double& until);

}  // namespace aha
