#include "aha/bench/multiply_add_loop_vector.h"
#include "aha/bench/multiply_add_loops.h"

namespace aha {

double multiply_add_loop_avx2(int64_t rounds) {
  return multiply_add_loop<12>(rounds);  // of 16 registers
}

}  // namespace aha
