#include "aha/metrics/curve.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aha/base/error.h"

namespace aha {
namespace {

struct RuleName {
  AreaRule rule;
  const char* name;
};
constexpr RuleName kRules[] = {{AreaRule::kAuc10, "auc10"},
                               {AreaRule::kMeanK, "mean_k"},
                               {AreaRule::kTrapezoid, "trapezoid"},
                               {AreaRule::kInner, "inner"},
                               {AreaRule::kNormalized, "normalized"}};

double sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Without its first or last point.
double mean_of_rest(std::span<const double> rest) {
  if (rest.empty()) throw input_error("mean_k: expected a curve of 2 points or more");
  return sum(rest) / static_cast<double>(rest.size());
}

double area(std::span<const double> curve, AreaRule rule) {
  if (rule == AreaRule::kInner) return trapezoid(curve.subspan(std::min<size_t>(1, curve.size())));
  return rule == AreaRule::kAuc10 ? auc10(curve) : trapezoid(curve);
}

// Of a curve that begins at the clean image. `rises`: the test begins at the other end.
double normalized_area(std::span<const double> curve, bool rises) {
  if (curve.size() < 2 || curve.front() == curve.back()) return 0.5;
  const double empty = curve.back(), range = std::abs(curve.front() - empty);
  std::vector<double> response;
  for (const double value : curve) response.push_back(std::clamp((value - empty) / range, 0.0, 1.0));
  if (rises) {
    std::reverse(response.begin(), response.end());
    response.front() = 0;
    std::partial_sum(response.begin(), response.end(), response.begin(),
                     [](double a, double b) { return std::max(a, b); });
  } else {
    response.front() = 1;
    std::partial_sum(response.begin(), response.end(), response.begin(),
                     [](double a, double b) { return std::min(a, b); });
  }
  return trapezoid(response);
}

}  // namespace

AreaRule area_rule_from_text(const std::string& text) {
  for (const auto& [rule, name] : kRules)
    if (text == name) return rule;
  throw unknown_name_error("area rule", text, area_rule_names());
}

std::vector<std::string> area_rule_names() {
  std::vector<std::string> names;
  for (const auto& [rule, name] : kRules) names.emplace_back(name);
  return names;
}

AreaRule rule_of_hits(AreaRule rule) {
  return rule == AreaRule::kNormalized ? AreaRule::kTrapezoid : rule;
}

double auc10(std::span<const double> curve) {
  if (curve.size() != 10)
    throw input_error("auc10: expected 10 points (0..90 % removed), found {}", curve.size());
  return 0.1 * (sum(curve) - (curve.front() + curve.back()) / 2);
}

double trapezoid(std::span<const double> curve) {
  if (curve.size() < 2) throw input_error("trapezoid: expected 2 points or more, found {}", curve.size());
  return (sum(curve) - (curve.front() + curve.back()) / 2) / static_cast<double>(curve.size() - 1);
}

int points_of(AreaRule rule, int steps) {
  return rule == AreaRule::kAuc10 || rule == AreaRule::kInner ? steps : steps + 1;
}

double deletion_area(std::span<const double> removed_top, AreaRule rule) {
  if (rule == AreaRule::kNormalized) return normalized_area(removed_top, false);
  return rule == AreaRule::kMeanK ? mean_of_rest(removed_top.subspan(std::min<size_t>(1, removed_top.size())))
                                  : area(removed_top, rule);
}

double insertion_area(std::span<const double> removed_bottom, AreaRule rule) {
  if (rule == AreaRule::kNormalized) return normalized_area(removed_bottom, true);
  return rule == AreaRule::kMeanK
             ? mean_of_rest(removed_bottom.first(std::max<size_t>(1, removed_bottom.size()) - 1))
             : area(removed_bottom, rule);
}

int64_t removed_pixels(int point, int steps, int64_t pixels) {
  return point * pixels / steps;
}

}  // namespace aha
