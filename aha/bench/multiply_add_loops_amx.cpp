#include "aha/bench/multiply_add_loops.h"
#include "aha/kernels/core/tile_instructions.h"

namespace aha {

double multiply_add_loop_amx(int64_t rounds) {
  using T = TileInstructions;
  T::begin();
  T::zero<0>(), T::zero<1>(), T::zero<2>(), T::zero<3>();
  T::zero<4>(), T::zero<5>(), T::zero<6>(), T::zero<7>();
  for (int64_t r = 0; r < rounds; ++r) {
    T::multiply_add<0, 4, 6>();
    T::multiply_add<1, 4, 7>();
    T::multiply_add<2, 5, 6>();
    T::multiply_add<3, 5, 7>();
  }
  T::end();
  return 4.0 * 2 * 16 * 16 * 32 * static_cast<double>(rounds);
}

}  // namespace aha
