// The tile kernels on tiles that live in memory: the same code as on AMX, instruction by instruction, at a
// fraction of the speed.
//
// With it, packing, blocking and epilogues of the tile kernels are tested on every machine with AVX-512.
// multiply_add follows the order of additions that Intel documents for TDPBF16PS: even and odd inputs summed
// apart with fused multiply-adds, then added, then added to C.
#pragma once

#include "aha/kernels/kernel_set.h"

namespace aha {

// kBf16 or kBf16Pair. Needs AVX-512.
const KernelSet& modeled_tile_kernels(Format format);

}  // namespace aha
