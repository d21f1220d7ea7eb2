// Spearman's rank correlation, ties averaged: how much two maps agree on what is important.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "aha/base/error.h"
#include "aha/base/stats.h"

namespace aha {

inline double rank_correlation(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size())
    throw input_error("rank correlation: expected equal counts, found {} and {}", a.size(), b.size());
  const auto ranks = [](std::span<const double> v) {
    std::vector<size_t> order(v.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return v[i] < v[j]; });
    std::vector<double> rank(v.size());
    for (size_t i = 0; i < order.size();) {
      size_t j = i;
      while (j < order.size() && v[order[j]] == v[order[i]]) ++j;
      for (size_t k = i; k < j; ++k) rank[order[k]] = static_cast<double>(i + j - 1) / 2;
      i = j;
    }
    return rank;
  };
  const auto ra = ranks(a), rb = ranks(b);
  const double ma = mean(ra), mb = mean(rb);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < ra.size(); ++i) {
    ab += (ra[i] - ma) * (rb[i] - mb);
    aa += (ra[i] - ma) * (ra[i] - ma);
    bb += (rb[i] - mb) * (rb[i] - mb);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace aha
