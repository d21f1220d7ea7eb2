#include "aha/image/resize_passes.h"

#include <algorithm>

namespace aha {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t byte_from_sum(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

void horizontal(const uint8_t* in, const TapTable& taps, int out_width, uint8_t* out) {
  for (int x = 0; x < out_width; ++x) {
    const int32_t* weight = taps.weight.data() + static_cast<size_t>(x) * taps.stride;
    const uint8_t* pixel = in + static_cast<size_t>(taps.first[x]) * 3;
    int32_t r = kHalf, g = kHalf, b = kHalf;
    for (int t = 0; t < taps.count[x]; ++t, pixel += 3) {
      r += weight[t] * pixel[0];
      g += weight[t] * pixel[1];
      b += weight[t] * pixel[2];
    }
    *out++ = byte_from_sum(r);
    *out++ = byte_from_sum(g);
    *out++ = byte_from_sum(b);
  }
}

void vertical(const uint8_t* in, size_t row_bytes, const TapTable& taps, int y, uint8_t* out) {
  const int32_t* weight = taps.weight.data() + static_cast<size_t>(y) * taps.stride;
  const uint8_t* top = in + static_cast<size_t>(taps.first[y]) * row_bytes;
  // A block of sums stays in the first cache while the taps run over it.
  constexpr size_t kBlock = 256;
  for (size_t begin = 0; begin < row_bytes; begin += kBlock) {
    const size_t n = std::min(kBlock, row_bytes - begin);
    int32_t sums[kBlock];
    std::fill_n(sums, n, kHalf);
    for (int t = 0; t < taps.count[y]; ++t) {
      const uint8_t* row = top + static_cast<size_t>(t) * row_bytes + begin;
      for (size_t i = 0; i < n; ++i) sums[i] += weight[t] * row[i];
    }
    for (size_t i = 0; i < n; ++i) out[begin + i] = byte_from_sum(sums[i]);
  }
}

}  // namespace

const ResizePasses& portable_passes() {
  static constexpr ResizePasses passes{horizontal, vertical};
  return passes;
}

const ResizePasses& best_passes() {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return avx2_passes();
#endif
  return portable_passes();
}

}  // namespace aha
