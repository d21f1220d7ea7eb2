// The eight AMX tile registers as a policy: kernels that work on tiles are templates over it, so that the
// same code runs on the instructions (here) and on tiles modelled in memory (tile_model.h), where AMX is
// missing.
//
// Every tile is 16 rows of 64 bytes. multiply_add: C (16x16 f32) += A (16x32 bf16) * B (32x16 bf16, rows
// interleaved in pairs). Written as assembly because the compiler's macros take only literal register numbers
// and do not say that they read memory.
#pragma once

#include <cstdint>

namespace aha {

struct TileInstructions {
  // Around every kernel call: tiles are state of the thread, and context switches are cheaper without them.
  static void begin() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shape;
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
  }
  static void end() { __asm__ volatile("tilerelease"); }

  template <int kTile>
  static void zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  static void load(const void* rows, int64_t stride_bytes) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride_bytes), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(void* rows, int64_t stride_bytes) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride_bytes), "i"(kTile) : "memory");
  }
  template <int kC, int kA, int kB>
  static void multiply_add() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
  }
};

}  // namespace aha
