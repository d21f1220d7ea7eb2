// Means with honest intervals: the image is the unit, resampling is seeded, pairs stay pairs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aha {

double mean(std::span<const double> values);
double standard_deviation(std::span<const double> values);  // with n - 1

struct Interval {
  double mean = 0, low = 0, high = 0;
};

// Percentile bootstrap of the mean: `resamples` draws of n values with replacement, the 2.5 % and 97.5 %
// points of their means. One value or none: low = high = mean.
Interval bootstrap(std::span<const double> values, uint64_t seed = 0, int resamples = 2000);

struct PairedDifference {
  Interval difference;  // mean of a - b with its bootstrap interval over images
  double p_value = 1;   // two-sided sign-flip permutation test
  double win_rate = 0;  // share of images with a > b; ties count half
};
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, uint64_t seed = 0,
                                   int resamples = 2000);

}  // namespace aha
