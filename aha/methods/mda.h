// MDA's magnitudes as plain functions (mda.cpp has the search).
#pragma once

#include <vector>

namespace aha {

// response: n + 1 values, convex. Value of the i-th region of the order: d_i / region_px + d_i (n - i) / n,
// d_i the fall of the response at it (i = 1..n).
std::vector<double> mda_values(const std::vector<double>& response, double region_px);

// (1 - gamma) sparse + gamma dense, dense: (n - i) / n where the value is kappa or more, at sparse's largest
// value.
std::vector<double> mda_mixture(const std::vector<double>& sparse, double gamma, double kappa);

}  // namespace aha
