#include "aha/bench/multiply_add_loop_vector.h"
#include "aha/bench/multiply_add_loops.h"

namespace aha {

double multiply_add_loop_avx512(int64_t rounds) {
  return multiply_add_loop<16>(rounds);  // of 32 registers
}

}  // namespace aha
