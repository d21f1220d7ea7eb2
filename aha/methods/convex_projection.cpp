#include "aha/methods/convex_projection.h"

#include <cstddef>

namespace aha {
namespace {

// Multipliers are sums of up to n^2 / 8 residuals: rounding makes about 1e-12 of them at n = 200.
constexpr double kMultiplierZero = 1e-11, kBendZero = 1e-14;

struct Knots {
  std::vector<char> knot;     // n + 1; both ends are
  std::vector<char> at_zero;  // a knot that rests at 0

  std::vector<size_t> list() const {
    std::vector<size_t> places;
    for (size_t i = 0; i < knot.size(); ++i)
      if (knot[i]) places.push_back(i);
    return places;
  }
};

double bend(const std::vector<double>& x, size_t i) {
  return x[i - 1] - 2 * x[i] + x[i + 1];
}

// The piecewise linear curve with these knots that is nearest to r.
std::vector<double> nearest_with(const Knots& knots, const std::vector<double>& r) {
  const auto at = knots.list();
  const size_t count = at.size();
  std::vector<double> diagonal(count), next(count), value(count);  // the tridiagonal system
  for (size_t k = 0; k < count; ++k) {
    diagonal[k] += 1;
    value[k] += r[at[k]];
    if (k + 1 == count) break;
    const auto length = static_cast<double>(at[k + 1] - at[k]);
    for (size_t i = at[k] + 1; i < at[k + 1]; ++i) {
      const double right = static_cast<double>(i - at[k]) / length, left = 1 - right;
      diagonal[k] += left * left;
      diagonal[k + 1] += right * right;
      next[k] += left * right;
      value[k] += left * r[i];
      value[k + 1] += right * r[i];
    }
  }
  for (size_t k = 0; k < count; ++k) {  // known values leave the system
    if (k > 0 && k + 1 < count && !knots.at_zero[at[k]]) continue;
    const double known = knots.at_zero[at[k]] ? 0 : r[at[k]];
    if (k > 0) value[k - 1] -= next[k - 1] * known, next[k - 1] = 0;
    if (k + 1 < count) value[k + 1] -= next[k] * known, next[k] = 0;
    diagonal[k] = 1;
    value[k] = known;
  }
  for (size_t k = 1; k < count; ++k) {
    const double factor = next[k - 1] / diagonal[k - 1];
    diagonal[k] -= factor * next[k - 1];
    value[k] -= factor * value[k - 1];
  }
  for (size_t k = count; k-- > 0;)
    value[k] = (value[k] - (k + 1 < count ? next[k] * value[k + 1] : 0)) / diagonal[k];
  std::vector<double> x(r.size());
  for (size_t k = 0; k + 1 < count; ++k) {
    const auto length = static_cast<double>(at[k + 1] - at[k]);
    for (size_t i = at[k]; i <= at[k + 1]; ++i)
      x[i] = value[k] + (value[k + 1] - value[k]) * (static_cast<double>(i - at[k]) / length);
  }
  return x;
}

// lambda of the bends, 0 at the knots: between them its second difference is the residual x - r.
std::vector<double> bend_multipliers(const Knots& knots, const std::vector<double>& x,
                                     const std::vector<double>& r) {
  const auto at = knots.list();
  std::vector<double> lambda(x.size());
  for (size_t k = 0; k + 1 < at.size(); ++k) {
    const size_t a = at[k], b = at[k + 1];
    double slope = 0;
    for (size_t i = a + 1; i < b; ++i) slope -= (x[i] - r[i]) * static_cast<double>(b - i);
    slope /= static_cast<double>(b - a);
    for (size_t i = a + 1; i < b; ++i) {
      lambda[i] = lambda[i - 1] + slope;
      slope += x[i] - r[i];
    }
  }
  return lambda;
}

}  // namespace

std::vector<double> convex_projection(const std::vector<double>& r) {
  if (r.size() < 3) return r;
  const size_t n = r.size() - 1;
  Knots knots{std::vector<char>(n + 1), std::vector<char>(n + 1)};
  knots.knot[0] = knots.knot[n] = 1;
  std::vector<double> x = nearest_with(knots, r);  // the line between the ends
  for (size_t step = 0; step < 50 * n; ++step) {   // far more than it takes; every x on the way is allowed
    const auto wanted = nearest_with(knots, r);
    double share = 1;
    size_t stop = 0;  // the knot at which the way to `wanted` ends
    bool stops_at_zero = false;
    for (size_t i = 1; i < n; ++i) {
      if (!knots.knot[i]) continue;
      const double now = bend(x, i), then = bend(wanted, i);
      if (then < -kBendZero && now < share * (now - then)) {
        share = now > 0 ? now / (now - then) : 0;
        stop = i;
        stops_at_zero = false;
      }
      if (!knots.at_zero[i] && wanted[i] < 0 && x[i] < share * (x[i] - wanted[i])) {
        share = x[i] > 0 ? x[i] / (x[i] - wanted[i]) : 0;
        stop = i;
        stops_at_zero = true;
      }
    }
    for (size_t i = 0; i <= n; ++i) x[i] += share * (wanted[i] - x[i]);
    if (stop > 0) {
      knots.knot[stop] = knots.at_zero[stop] = stops_at_zero;
      if (stops_at_zero) x[stop] = 0;
      continue;
    }
    const auto lambda = bend_multipliers(knots, x, r);
    double worst = -kMultiplierZero;
    size_t best = 0;
    for (size_t i = 1; i < n; ++i) {
      const double of_zero = x[i] - r[i] - lambda[i - 1] - lambda[i + 1];
      const double multiplier = knots.at_zero[i] ? of_zero : lambda[i];
      if (multiplier < worst) worst = multiplier, best = i;
    }
    if (best == 0) break;
    knots.at_zero[best] = 0;
    knots.knot[best] = 1;
  }
  return x;
}

}  // namespace aha
