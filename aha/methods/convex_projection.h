// The nearest convex curve: what makes MDA's magnitudes fall from the most important region to the least.
//
//   min sum_i (x_i - r_i)^2   with x_0 = r_0, x_n = r_n, x >= 0, x_{i-1} - 2 x_i + x_{i+1} >= 0
//
// A convex curve is piecewise linear between a few knots. Active set: knots are added where the multiplier of
// x_{i-1} - 2 x_i + x_{i+1} >= 0 is negative and leave where the curve would bend the other way; knots may
// rest at 0. With the knots given, the values there are the solution of a tridiagonal system (hat functions),
// so that a step costs O(n) and is exact to rounding however long the curve is. (Dual coordinate ascent, the
// usual small solver, needs a number of sweeps that grows with n^4.)
#pragma once

#include <vector>

namespace aha {

// response: its ends in 0..1. x <= 1 follows from the ends.
std::vector<double> convex_projection(const std::vector<double>& response);

}  // namespace aha
