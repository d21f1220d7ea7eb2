#include "aha/base/stats.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aha/base/error.h"
#include "aha/base/rng.h"

namespace aha {

double mean(std::span<const double> values) {
  return values.empty()
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double m = mean(values);
  double sum = 0;
  for (double v : values) sum += (v - m) * (v - m);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

Interval bootstrap(std::span<const double> values, uint64_t seed, int resamples) {
  const double m = mean(values);
  if (values.size() < 2) return {m, m, m};
  Rng rng(seed, stream_id({0x626f6f74, values.size()}));
  std::vector<double> means(static_cast<size_t>(resamples));
  for (auto& sample : means) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[rng.below(values.size())];
    sample = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double q) {
    return means[static_cast<size_t>(q * static_cast<double>(means.size() - 1) + 0.5)];
  };
  return {m, at(0.025), at(0.975)};
}

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, uint64_t seed,
                                   int resamples) {
  if (a.size() != b.size())
    throw input_error("paired difference: expected equal counts, found {} and {}", a.size(), b.size());
  std::vector<double> difference(a.size());
  double wins = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference[i] = a[i] - b[i];
    wins += difference[i] > 0 ? 1 : difference[i] == 0 ? 0.5 : 0;
  }
  PairedDifference out;
  out.difference = bootstrap(difference, seed, resamples);
  if (a.empty()) return out;
  out.win_rate = wins / static_cast<double>(a.size());
  Rng rng(seed, stream_id({0x666c6970, a.size()}));
  const double seen = std::abs(out.difference.mean) * static_cast<double>(a.size());
  int as_extreme = 0;
  for (int r = 0; r < resamples; ++r) {
    double sum = 0;
    for (double d : difference) sum += rng.bits() & 1 ? d : -d;
    as_extreme += std::abs(sum) >= seen * (1 - 1e-12);
  }
  out.p_value = (as_extreme + 1.0) / (resamples + 1.0);
  return out;
}

}  // namespace aha
