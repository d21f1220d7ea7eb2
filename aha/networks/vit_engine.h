// A vision transformer handed to the fast engine (nn/frozen_vit.h).
#pragma once

#include "aha/networks/vit.h"
#include "aha/nn/frozen_vit.h"

namespace aha {

// The engine has widths of tokens and heads in multiples of 32, that of the MLP too with SwiGLU, at least two
// blocks, and sees whole patches.
bool engine_fits(const VitConfig& config, const InputSpec& input);

// The network's numbers for inputs of this size and normalization.
FrozenVitWeights frozen_weights_from(Vit& network, const InputSpec& input);

}  // namespace aha
