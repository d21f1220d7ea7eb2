// Loops that do nothing but multiply and add in registers, each compiled for its instruction set: `rounds`
// rounds; returns how many floating-point operations that were.
#pragma once

#include <cstdint>

namespace aha {

double multiply_add_loop_portable(int64_t rounds);
double multiply_add_loop_avx2(int64_t rounds);
double multiply_add_loop_avx512(int64_t rounds);
double multiply_add_loop_avx512bf16(int64_t rounds);
double multiply_add_loop_amx(int64_t rounds);

}  // namespace aha
