#include "aha/kernels/gemm/gemm_tiles.h"
#include "aha/kernels/kernel_list.h"
#include "aha/kernels/sets/kernels_bf16.h"
#include "aha/kernels/core/tile_instructions.h"

namespace aha {
namespace {

struct Amx : TileInstructions {
  static __m512i narrowed(Vec first, Vec second) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  }
};

}  // namespace

constinit const KernelSet kAmxExactKernels =
    bf16_kernels<Amx, FormBf16Pair<Amx>>("amx exact", Isa::kAmx, gemm_tiles<Amx, FormBf16Pair<Amx>>);
constinit const KernelSet kAmxBf16Kernels = bf16_kernels<Amx, FormBf16<Amx>>(
    "amx bf16", Isa::kAmx, gemm_tiles<Amx, FormBf16<Amx>>, &kAmxExactKernels);

}  // namespace aha
