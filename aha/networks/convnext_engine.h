// A ConvNeXt handed to the fast engine (nn/frozen_convnext.h).
#pragma once

#include "aha/networks/convnext.h"
#include "aha/nn/frozen_convnext.h"

namespace aha {

// The engine has widths in multiples of 32 and images that every stage halves without a rest.
bool engine_fits(const ConvNextConfig& config, const InputSpec& input);

// The network's numbers for inputs of this size and normalization.
FrozenConvNextWeights frozen_weights_from(ConvNext& network, const InputSpec& input);

}  // namespace aha
