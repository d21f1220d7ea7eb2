#include "aha/base/stats.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/rng.h"

namespace aha {
namespace {

constexpr int kExactImages = 13;
constexpr uint64_t kDraws = 0x626f6f74, kFlips = 0x666c6970;  // purposes of random numbers

double normal_quantile(double p) {
  return boost::math::quantile(boost::math::normal(), p);
}

double normal_share(double z) {
  return boost::math::cdf(boost::math::normal(), z);
}

// Of P(|sum of random signs times values| >= z sqrt(sum of squares)), by Bentkus and Dzindzalieta (2015): the
// normal tail times 1 / 4 P(N >= sqrt 2) = 3.178, for any values.
double gaussian_bound(double z) {
  const auto tail = [](double at) {
    return boost::math::cdf(boost::math::complement(boost::math::normal(), at));
  };
  return 2 * tail(z) / (4 * tail(std::sqrt(2.0)));
}

size_t count_of(const Columns& columns) {
  const size_t n = columns.empty() ? 0 : columns[0].size();
  for (const auto& column : columns)
    if (column.size() != n)
      throw input_error("statistics: expected columns of {} values, found one of {}", n, column.size());
  return n;
}

// [column][r] = sum_i w_r[i] column[i]; weigh(r, w) fills the n weights of round r. Rounds go through the
// columns eight at a time, so that a block of values is read once for all of them.
template <class Weigh>
Columns weighted_sums(const Columns& columns, int rounds, const Weigh& weigh) {
  constexpr int64_t kTogether = 8;
  constexpr size_t kBlock = 64;
  const size_t n = count_of(columns), C = columns.size();
  std::vector<double> rows(n * C);  // (n, C)
  for (size_t c = 0; c < C; ++c)
    for (size_t i = 0; i < n; ++i) rows[i * C + c] = columns[c][i];
  Columns sums(C, std::vector<double>(static_cast<size_t>(rounds)));
  parallel_for((rounds + kTogether - 1) / kTogether, [&](int64_t group, int) {
    const int64_t first = group * kTogether, last = std::min<int64_t>(first + kTogether, rounds);
    std::vector<std::vector<double>> weights;
    for (int64_t r = first; r < last; ++r) weigh(r, weights.emplace_back(n, 0.0));
    for (size_t c = 0; c < C; c += kBlock) {
      const size_t width = std::min(kBlock, C - c);
      double sum[kTogether][kBlock] = {};
      for (size_t i = 0; i < n; ++i) {
        const double* values = &rows[i * C + c];
        for (size_t r = 0; r < weights.size(); ++r) {
          const double w = weights[r][i];
          if (w == 0) continue;
          for (size_t k = 0; k < width; ++k) sum[r][k] += w * values[k];
        }
      }
      for (size_t r = 0; r < weights.size(); ++r)
        for (size_t k = 0; k < width; ++k) sums[c + k][first + r] = sum[r][k];
    }
  });
  return sums;
}

}  // namespace

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

Columns resampled_means(const Columns& columns, uint64_t seed, int resamples) {
  const size_t n = count_of(columns);
  return weighted_sums(columns, resamples, [&](int64_t r, std::vector<double>& weights) {
    const Rng rng(seed, stream_id({kDraws, n, static_cast<uint64_t>(r)}));
    for (size_t i = 0; i < n; i += 4) {
      const auto bits = rng.block(i / 4);
      for (size_t k = 0; k < std::min<size_t>(4, n - i); ++k)  // off from even by n / 2^32 at most
        weights[static_cast<uint64_t>(bits[k]) * n >> 32] += 1 / static_cast<double>(n);
    }
  });
}

Interval bca_interval(std::span<const double> values, std::vector<double> resampled, double level) {
  const double m = mean(values);
  double squares = 0, cubes = 0;
  for (const double v : values) {
    squares += (v - m) * (v - m);
    cubes += (v - m) * (v - m) * (v - m);
  }
  const double noise = 1e-13 * (std::abs(m) + std::sqrt(squares));  // of sums in another order
  if (values.size() < 2 || resampled.empty() || std::sqrt(squares) <= noise) return {m, m, m};
  std::sort(resampled.begin(), resampled.end());
  const double R = static_cast<double>(resampled.size());
  double below = 0;
  for (const double r : resampled) below += r < m - noise ? 1 : r <= m + noise ? 0.5 : 0;
  const double z0 = normal_quantile(std::clamp(below / R, 0.5 / R, 1 - 0.5 / R));
  const double a = cubes / (6 * std::pow(squares, 1.5));
  const auto end = [&](double z) {
    const double share = normal_share(z0 + (z0 + z) / std::max(1e-6, 1 - a * (z0 + z)));
    return resampled[static_cast<size_t>(std::lround(share * (R - 1)))];
  };
  return {m, end(normal_quantile((1 - level) / 2)), end(normal_quantile((1 + level) / 2))};
}

std::vector<Interval> bootstrap(const Columns& columns, uint64_t seed, int resamples) {
  auto resampled = resampled_means(columns, seed, resamples);
  std::vector<Interval> out(columns.size());
  parallel_for(std::ssize(columns),
               [&](int64_t c, int) { out[c] = bca_interval(columns[c], std::move(resampled[c])); });
  return out;
}

Interval bootstrap(std::span<const double> values, uint64_t seed, int resamples) {
  return bootstrap(Columns{{values.begin(), values.end()}}, seed, resamples)[0];
}

std::vector<double> sign_flip_p(const Columns& columns, uint64_t seed, int flips) {
  const size_t n = count_of(columns);
  std::vector<double> out(columns.size(), 1), sums(columns.size()), squares(columns.size());
  const bool exact = n <= kExactImages;
  const int rounds = exact ? 1 << n : flips;
  Columns flipped;  // those whose bound is not below anything that flips can show
  std::vector<size_t> which;
  for (size_t c = 0; c < columns.size(); ++c) {
    for (const double v : columns[c]) sums[c] += v, squares[c] += v * v;
    if (squares[c] == 0) continue;
    out[c] = exact ? 1 : gaussian_bound(std::abs(sums[c]) / std::sqrt(squares[c]));
    if (out[c] <= 1 / (rounds + 1.0)) continue;
    which.push_back(c);
    flipped.push_back(columns[c]);
  }
  if (which.empty()) return out;
  const auto found = weighted_sums(flipped, rounds, [&](int64_t r, std::vector<double>& signs) {
    const Rng rng(seed, stream_id({kFlips, n, static_cast<uint64_t>(r)}));
    uint32_t bits = static_cast<uint32_t>(r);
    for (size_t i = 0; i < n; ++i, bits >>= 1) {
      if (!exact && i % 32 == 0) bits = rng.bits_at(i / 32);
      signs[i] = bits & 1 ? 1 : -1;
    }
  });
  for (size_t k = 0; k < which.size(); ++k) {
    const size_t c = which[k];
    const double seen = std::abs(sums[c]) - 1e-12 * std::sqrt(squares[c] * static_cast<double>(n));
    const auto as_extreme = static_cast<double>(
        std::count_if(found[k].begin(), found[k].end(), [&](double s) { return std::abs(s) >= seen; }));
    out[c] = std::min(out[c], exact ? as_extreme / rounds : (as_extreme + 1) / (rounds + 1));
  }
  return out;
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return p[i] < p[j]; });
  std::vector<double> out(p.size());
  double so_far = 0;  // the smallest p times m, the next times m - 1, never falling
  for (size_t i = 0; i < order.size(); ++i)
    out[order[i]] = so_far =
        std::max(so_far, std::min(1.0, p[order[i]] * static_cast<double>(order.size() - i)));
  return out;
}

std::vector<PairedDifference> paired_differences(const Columns& a, const Columns& b, const Columns& drawn_a,
                                                 const Columns& drawn_b, uint64_t seed, double level) {
  if (a.size() != b.size())
    throw input_error("paired difference: expected equal counts, found {} and {}", a.size(), b.size());
  std::vector<PairedDifference> out(a.size());
  Columns differences(a.size());
  for (size_t c = 0; c < a.size(); ++c) {
    if (a[c].size() != b[c].size())
      throw input_error("paired difference: expected equal counts, found {} and {}", a[c].size(),
                        b[c].size());
    double wins = 0;
    for (size_t i = 0; i < a[c].size(); ++i) {
      differences[c].push_back(a[c][i] - b[c][i]);
      wins += a[c][i] > b[c][i] ? 1 : a[c][i] == b[c][i] ? 0.5 : 0;
    }
    if (!a[c].empty()) out[c].win_rate = wins / static_cast<double>(a[c].size());
  }
  const auto p = sign_flip_p(differences, seed);
  parallel_for(std::ssize(a), [&](int64_t c, int) {
    std::vector<double> drawn = drawn_a[c];
    for (size_t r = 0; r < drawn.size(); ++r) drawn[r] -= drawn_b[c][r];
    out[c].difference = bca_interval(differences[c], std::move(drawn), level);
    out[c].p_value = p[c];
  });
  return out;
}

std::vector<PairedDifference> paired_differences(const Columns& a, const Columns& b, uint64_t seed,
                                                 double level) {
  return paired_differences(a, b, resampled_means(a, seed), resampled_means(b, seed), seed, level);
}

PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, uint64_t seed,
                                   double level) {
  return paired_differences({{a.begin(), a.end()}}, {{b.begin(), b.end()}}, seed, level)[0];
}

double detectable_difference(double deviation, size_t n, double power) {
  return (normal_quantile(0.975) + normal_quantile(power)) * deviation /
         std::sqrt(static_cast<double>(std::max<size_t>(1, n)));
}

double kendall_tau(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  int pairs = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = i + 1; j < a.size(); ++j, ++pairs) {
      const double product = (a[i] - a[j]) * (b[i] - b[j]);
      sum += product > 0 ? 1 : product < 0 ? -1 : 0;
    }
  return pairs ? sum / pairs : 1;
}

std::vector<double> ranks_from_best(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return values[i] > values[j]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0, j = 0; i < order.size(); i = j) {
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (size_t k = i; k < j; ++k) ranks[order[k]] = static_cast<double>(i + j + 1) / 2;
  }
  return ranks;
}

double break_even(double training, double slower, double faster) {
  return slower > faster ? training / (slower - faster) : std::numeric_limits<double>::infinity();
}

}  // namespace aha
