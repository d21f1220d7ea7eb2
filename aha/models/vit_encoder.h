// A vision transformer as the encoder of an explainer.
#pragma once

#include "aha/models/encoder.h"
#include "aha/models/vit.h"

namespace aha {

// Blocks that are tapped unless told: 4, 11, 17, 23 of 24 and 2, 5, 8, 11 of 12 (0-based, as the DINO depth
// heads do), else four evenly spaced ones.
std::vector<int> default_blocks(int depth);

// info: name, sha256, normalized, mean and std; the levels follow from the blocks. With a precision, images
// of the size seen first run on the fast engine where it fits: for networks whose weights will not change.
std::unique_ptr<Encoder> encoder_from_vit(Vit network, EncoderInfo info, std::vector<int> blocks = {},
                                          std::optional<Precision> engine_precision = std::nullopt);

}  // namespace aha
