// A classifier whose weights are drawn anew from the top down: what the parameter randomization test of
// Adebayo et al. ("Sanity checks for saliency maps", 2018) explains instead of the target.
//
// Weights come in groups: what stands before the first block (the stem), each block, what stands behind the
// last one (the head). New weights are those that the family begins to learn from.
#pragma once

#include "aha/base/context.h"
#include "aha/networks/classifier.h"

namespace aha {

// 0 = its weights cannot be reached (TorchScript).
int weight_groups(Classifier& target);

// The same network with the last `groups` groups random, on an engine of its own; 1 = the head alone. The
// target itself does not change. Its info has no sha256.
std::unique_ptr<Classifier> randomized(Classifier& target, int groups, uint64_t seed, const Context& context);

}  // namespace aha
