// bfloat16: the upper half of a float32. Same range, 8 bits of significand, rounded to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace aha {

using Bf16 = uint16_t;

constexpr int64_t kTileElements = 512;  // of a tile: 16 rows of 32, or 16 pairs of rows of 16

inline float float_from_bf16(Bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

inline Bf16 bf16_from_float(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<Bf16>(bits >> 16 | 0x40);  // NaN stays NaN
  return static_cast<Bf16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace aha
