// Whether what the paper says of its figures holds of ours.
//
//   rising   each of `rows` is better than the one before
//   above    `row` is better than each of `rows`
//   within   `row` differs from each of `rows` by at most `amount`
//   times    `row` is at least `amount` times each of `rows`
//
// Better is as the metric has it. A claim is checked in each block that has its rows; nothing is said of the
// others.
#pragma once

#include <string>
#include <vector>

#include "aha/experiments/outcome.h"
#include "aha/experiments/recipe.h"

namespace aha {

struct Verdict {
  std::string block, explained;
  bool holds = false;
  // Where it is the smallest margin (or the first that fails): "0.4210 against 0.4105, difference +0.0105
  // [+0.0021, +0.0190]"; the interval is paired by image, and absent where the images differ.
  std::string figures;
  bool separable = true;  // false = the paired interval of the decisive difference holds 0
};

std::vector<Verdict> verdicts(const Claim& claim, const Outcome& outcome);

}  // namespace aha
