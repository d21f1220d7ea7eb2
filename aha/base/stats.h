// Means with honest intervals: the image is the unit, resampling is seeded, pairs stay pairs.
//
// Several columns (methods, differences of methods) over the same images share their resamples and sign
// flips, so that a table of many methods costs little more than one: summarizing 30 methods x 20 metrics x
// 1,000 images takes about two seconds on two cores (evaluate/summary_test.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace aha {

double mean(std::span<const double> values);
double standard_deviation(std::span<const double> values);  // with n - 1

// Values of the same images in each.
using Columns = std::vector<std::vector<double>>;

constexpr int kResamples = 2000;

// [column][resample]: means of n images drawn with replacement, the same draws for every column.
Columns resampled_means(const Columns& columns, uint64_t seed = 0, int resamples = kResamples);

struct Interval {
  double mean = 0, low = 0, high = 0;
};

// 95 % interval of the mean by the bias-corrected and accelerated bootstrap (Efron 1987). With z = -1.96 and
// 1.96, z0 the normal quantile of the share of resampled means below the mean, and
// a = sum (x - m)^3 / 6 (sum (x - m)^2)^1.5, the ends are the Phi(z0 + (z0 + z) / (1 - a (z0 + z))) points of
// the resampled means. One value or none: low = high = mean. Another `level` moves z.
Interval bootstrap(std::span<const double> values, uint64_t seed = 0, int resamples = kResamples);
std::vector<Interval> bootstrap(const Columns& columns, uint64_t seed = 0, int resamples = kResamples);
Interval bca_interval(std::span<const double> values, std::vector<double> resampled, double level = 0.95);

// Two-sided p values of "the mean is zero" by flipping signs, all 2^n of them up to 13 images, else 10,000
// random ones. So many cannot show a p below 1e-4, which a table of a thousand comparisons needs: the
// smaller of the estimate and of a bound by the normal distribution, above which the exact p never is,
// counts: 2 * 3.178 (1 - Phi(|sum x| / sqrt(sum x^2))) (Bentkus and Dzindzalieta 2015).
std::vector<double> sign_flip_p(const Columns& columns, uint64_t seed = 0, int flips = 10000);

// Holm's correction for as many comparisons as there are p values, in their order.
std::vector<double> holm(const std::vector<double>& p);

struct PairedDifference {
  Interval difference;  // mean of a - b with its bootstrap interval over images
  double p_value = 1;   // sign_flip_p
  double win_rate = 0;  // share of images with a > b; ties count half
};
PairedDifference paired_difference(std::span<const double> a, std::span<const double> b, uint64_t seed = 0,
                                   double level = 0.95);
// Of each a with the b of the same place. Who has their resampled_means() already gives them.
std::vector<PairedDifference> paired_differences(const Columns& a, const Columns& b, uint64_t seed = 0,
                                                 double level = 0.95);
std::vector<PairedDifference> paired_differences(const Columns& a, const Columns& b, const Columns& drawn_a,
                                                 const Columns& drawn_b, uint64_t seed = 0,
                                                 double level = 0.95);

// The smallest difference that a two-sided test of level 5 % finds with this power among n pairs whose
// differences have this standard deviation: (z(97.5 %) + z(power)) deviation / sqrt(n).
double detectable_difference(double deviation, size_t n, double power = 0.8);

// Kendall's tau-a of two lists of values; 1 = the same order.
double kendall_tau(const std::vector<double>& a, const std::vector<double>& b);

// From 1 for the highest value; equal values share the mean of their ranks.
std::vector<double> ranks_from_best(std::span<const double> values);

// How many maps until a trained explainer has paid off: training / (slower - faster), all in seconds;
// infinity where it is not faster.
double break_even(double training, double slower, double faster);

}  // namespace aha
