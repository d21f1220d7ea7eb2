#include "aha/experiments/claim.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

namespace aha {
namespace {

struct Margin {
  double margin = std::numeric_limits<double>::infinity();  // at least 0 where the claim holds
  std::string figures = {};
  bool separable = true;
};

int direction_of(const Outcome& outcome, const std::string& metric) {
  for (const auto& column : outcome.columns)
    if (column.name == metric) return column.better < 0 ? -1 : 1;
  return 1;
}

Margin margin_of(const Claim& claim, const OutcomeRow& first, const OutcomeRow& second, int direction) {
  const Found &a = first.found.at(claim.metric), &b = second.found.at(claim.metric);
  const double difference = a.value.mean - b.value.mean;
  Margin out;
  out.figures = fmt::format("{} {:.4f}, {} {:.4f}", first.row, a.value.mean, second.row, b.value.mean);
  if (claim.kind == "within")
    out.margin = claim.amount - std::abs(difference);
  else if (claim.kind == "times")
    out.margin = a.value.mean / std::max(1e-12, b.value.mean) - claim.amount;
  else
    out.margin = difference == 0 ? -1e-12 : direction * difference;  // equal is not better
  if (claim.kind == "times") out.figures += fmt::format(", {:.1f} times", a.value.mean / b.value.mean);
  if (!first.image_set.empty() && first.image_set == second.image_set && a.per_image.size() > 1 &&
      a.per_image.size() == b.per_image.size()) {
    std::vector<double> left, right;
    for (size_t i = 0; i < a.per_image.size(); ++i)
      if (std::isfinite(a.per_image[i]) && std::isfinite(b.per_image[i]))
        left.push_back(a.per_image[i]), right.push_back(b.per_image[i]);
    const Interval paired = paired_difference(left, right).difference;
    out.separable = paired.low > 0 || paired.high < 0;
    if (claim.kind != "times")
      out.figures +=
          fmt::format(": difference {:+.4f} [{:+.4f}, {:+.4f}]", paired.mean, paired.low, paired.high);
  }
  return out;
}

}  // namespace

std::vector<Verdict> verdicts(const Claim& claim, const Outcome& outcome) {
  const int direction = direction_of(outcome, claim.metric);
  std::vector<Verdict> all;
  for (const auto& [block, explained] : outcome.blocks()) {
    const auto found = [&](const std::string& name) -> const OutcomeRow* {
      const OutcomeRow* row = outcome.find(block, explained, name);
      const bool there =
          row && row->found.contains(claim.metric) && std::isfinite(row->found.at(claim.metric).value.mean);
      return there ? row : nullptr;
    };
    std::vector<std::string> names = claim.rows;
    if (names == std::vector<std::string>{"*"}) {
      names.clear();
      for (const auto& row : outcome.rows)
        if (row.block == block && row.explained == explained && row.row != claim.row)
          names.push_back(row.row);
    }
    std::vector<const OutcomeRow*> rows;
    for (const auto& name : names)
      if (const OutcomeRow* row = found(name)) rows.push_back(row);
    std::vector<std::pair<const OutcomeRow*, const OutcomeRow*>> pairs;  // the first should be the better one
    if (claim.kind == "rising")
      for (size_t i = 1; i < rows.size(); ++i) pairs.emplace_back(rows[i], rows[i - 1]);
    else if (const OutcomeRow* own = found(claim.row))
      for (const OutcomeRow* row : rows) pairs.emplace_back(own, row);
    if (pairs.empty()) continue;
    Margin least;
    for (const auto& [first, second] : pairs)
      if (Margin one = margin_of(claim, *first, *second, direction); one.margin < least.margin)
        least = std::move(one);
    all.push_back({block, explained, least.margin >= 0, least.figures, least.separable});
  }
  return all;
}

}  // namespace aha
