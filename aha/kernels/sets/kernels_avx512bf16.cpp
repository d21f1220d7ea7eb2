#include "aha/kernels/gemm/gemm_dots.h"
#include "aha/kernels/kernel_list.h"
#include "aha/kernels/sets/kernels_bf16.h"

namespace aha {
namespace {

struct Dots {
  static void begin() {}
  static void end() {}
  static Vec dot(Vec sums, __m512i x, __m512i w) {
    return _mm512_dpbf16_ps(sums, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w));
  }
  static __m512i narrowed(Vec first, Vec second) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  }
};

}  // namespace

// What must not be rounded runs in float32: three dot products for a pair take 1.5 times its time.
constinit const KernelSet kAvx512Bf16Kernels = bf16_kernels<Dots, FormBf16<Dots>>(
    "avx512 bf16", Isa::kAvx512Bf16, gemm_dots<Dots, FormBf16<Dots>>, &kAvx512Kernels);

}  // namespace aha
