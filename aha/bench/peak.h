// What one core can multiply at most: multiply-adds whose operands never leave the registers, measured here
// and now, because clock rates depend on the machine, its neighbors and the instructions themselves.
//
// Tiles and bf16 dot products count the products of bf16 numbers; the exact set of tiles (two bf16 numbers a
// float32, three GEMMs) can therefore reach a third of it.
#pragma once

#include "aha/bench/timing.h"
#include "aha/kernels/core/cpu.h"

namespace aha {

// GFLOP/s of one core at this level, which must be present (kernels/core/cpu.h); a multiplication and an
// addition are two.
double peak_gflops(Isa isa, const Repeats& repeats, const Context& context);

}  // namespace aha
