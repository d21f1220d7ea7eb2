#include "aha/bench/peak.h"

#include "aha/base/error.h"
#include "aha/bench/multiply_add_loops.h"

namespace aha {
namespace {

double loop_of(Isa isa, int64_t rounds) {
  switch (isa) {
    case Isa::kAvx2:
      return multiply_add_loop_avx2(rounds);
    case Isa::kAvx512:
      return multiply_add_loop_avx512(rounds);
    case Isa::kAvx512Bf16:
      return multiply_add_loop_avx512bf16(rounds);
    case Isa::kAmx:
      return multiply_add_loop_amx(rounds);
    case Isa::kReference:
      break;
  }
  return multiply_add_loop_portable(rounds);
}

}  // namespace

double peak_gflops(Isa isa, const Repeats& repeats, const Context& context) {
  if (isa > present_isa().isa)
    throw input_error("peak: expected an instruction set of this machine, found {}; available up to {}",
                      name_of(isa), name_of(present_isa().isa));
  constexpr int64_t kRounds = 200000;  // half a millisecond and more
  double flops = 0;
  const double ms = best_ms([&] { flops = loop_of(isa, kRounds); }, TimeKind::kThreadCpu, repeats, context);
  return 1e-6 * flops / ms;
}

}  // namespace aha
