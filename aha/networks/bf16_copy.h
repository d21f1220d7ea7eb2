// The same network with its GEMMs in bf16, for questions whose answers are only averaged: the score of a map
// is a mean over dozens of probabilities and keeps its third digit (bf16_agreement_test measures the logits).
#pragma once

#include <memory>

#include "aha/base/context.h"
#include "aha/networks/classifier.h"

namespace aha {

// Nothing where that is not faster: the CPU has no fast bf16 (kernels/core/cpu.h), the target runs in bf16
// already or on another device, or it has no engine of ours. It shares the target's weights.
// Cost: the weights are packed once more.
std::unique_ptr<Classifier> bf16_copy(Classifier& target, const Context& context);

}  // namespace aha
