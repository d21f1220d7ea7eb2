// The exact order of a map, most important first, with its ties made visible.
//
// The order is total: equal values are ordered by the tie rule, never by chance, so a map has one order on
// every machine. Values are compared as float32; -0 equals 0. Ties matter for maps with large zero areas and
// for patch-constant maps, so their share is reported.
#pragma once

#include <string>

#include "aha/tensor/tensor.h"

namespace aha {

enum class TieRule {
  kIndex,    // smaller index first: a stable descending sort
  kReverse,  // larger index first: flip(argsort(ascending)), as much public code does
  kJitter,   // min-max scaled map + 1e-4 * N(0, 1), as ROAD does; seeded per image
};
TieRule tie_rule_from_name(const std::string& name);  // index, reverse, jitter

struct HardOrder {
  Tensor order;     // (B, N) int64: order[b][0] is the most important element of image b
  Tensor tie_rate;  // (B) share of elements whose value another element has too
};

// map (B, N) or (B, H, W), finite. Image b jitters with the stream first_image + b of the seed.
HardOrder hard_order(const Tensor& map, TieRule rule = TieRule::kIndex, uint64_t seed = 0,
                     uint64_t first_image = 0);

}  // namespace aha
