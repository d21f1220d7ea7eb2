#include "aha/kernels/kernel_list.h"
#include "aha/kernels/kernels_tiles.h"
#include "aha/kernels/tile_instructions.h"

namespace aha {
namespace {

struct Amx : TileInstructions {
  static __m512i narrowed(Vec first, Vec second) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  }
};

}  // namespace

constinit const KernelSet kAmxExactKernels = tile_kernels<Amx, FormBf16Pair<Amx>>("amx exact", Isa::kAmx);
constinit const KernelSet kAmxBf16Kernels =
    tile_kernels<Amx, FormBf16<Amx>>("amx bf16", Isa::kAmx, &kAmxExactKernels);

}  // namespace aha
