// SAM 2's image encoder as one of ours, from the initializers of its exported graph (weights/ort_file.h):
//
//   model.image_encoder.trunk.NAME                               NAME, as SAM 2's checkpoints have it
//   /image_encoder/trunk/blocks.0/attn/qkv/Transpose_output_0    blocks.0.attn.qkv.weight, transposed
//   /image_encoder/trunk/Transpose_output_0                      the places of all tokens, (1, C, h, w)
//
// and whatever belongs to SAM 2's other parts, or to the shapes of the graph, which is left out.
//
// An export has the places already made for its size: a coarse map resampled plus repeated tiles (hiera.h).
// They are linear in the two, which come back by least squares in double. A constant that moves from one to
// the other changes nothing; the shortest solution is taken. The order of all sums is fixed: an explainer
// knows its encoder by the file's sha256, so the converted file must not depend on the machine.
#pragma once

#include "aha/networks/hiera.h"

namespace aha {

struct HieraPlaces {
  Tensor coarse, tiles;  // (1, C, side, side) each, float32
};
// places (1, C, h, w). Input error where they are not made that way.
HieraPlaces places_from_map(const Tensor& places, int coarse_side, int tile_side, const std::string& where);

// The network of these initializers, filled and frozen. `config`: what shapes do not show, and the two sides.
Hiera hiera_from_sam2(const TensorTable& graph, const HieraConfig& config);

}  // namespace aha
