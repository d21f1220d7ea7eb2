#include "aha/testing/tile_model.h"

#include <cstring>

#include "aha/kernels/gemm/gemm_tiles.h"
#include "aha/kernels/sets/kernels_bf16.h"

namespace aha {
namespace {

struct TileModel {
  struct alignas(64) Tile {
    uint8_t rows[16][64];
  };
  static Tile& tile(int i) {
    static thread_local Tile tiles[8];
    return tiles[i];
  }

  static void begin() {
    for (int i = 0; i < 8; ++i) tile(i) = {};
  }
  static void end() {}
  template <int kTile>
  static void zero() {
    tile(kTile) = {};
  }
  template <int kTile>
  static void load(const void* rows, int64_t stride_bytes) {
    for (int r = 0; r < 16; ++r)
      std::memcpy(tile(kTile).rows[r], static_cast<const char*>(rows) + r * stride_bytes, 64);
  }
  template <int kTile>
  static void store(void* rows, int64_t stride_bytes) {
    for (int r = 0; r < 16; ++r)
      std::memcpy(static_cast<char*>(rows) + r * stride_bytes, tile(kTile).rows[r], 64);
  }
  template <int kC, int kA, int kB>
  static void multiply_add() {
    const Tile &a = tile(kA), &b = tile(kB);
    for (int m = 0; m < 16; ++m) {
      Vec even{}, odd{};
      for (int k = 0; k < 16; ++k) {
        uint32_t x;
        std::memcpy(&x, a.rows[m] + k * 4, 4);
        const __m512i y = _mm512_load_si512(b.rows[k]);
        const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
        even = fma(splat(std::bit_cast<float>(x << 16)), _mm512_castsi512_ps(_mm512_slli_epi32(y, 16)), even);
        odd = fma(splat(std::bit_cast<float>(x & 0xffff0000)),
                  _mm512_castsi512_ps(_mm512_and_si512(y, upper)), odd);
      }
      auto* c = reinterpret_cast<float*>(tile(kC).rows[m]);
      store_vec(c, load_vec(c) + (even + odd));
    }
  }

  // Round to nearest even; a NaN keeps its upper half and becomes quiet.
  static __m512i narrowed(Vec first, Vec second) {
    const auto half = [](Vec x) {
      const __m512i bits = _mm512_castps_si512(x);
      const __m512i even = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
      const __m512i rounded =
          _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(even, _mm512_set1_epi32(0x7fff))), 16);
      const __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
      return _mm512_cvtepi32_epi16(
          _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), rounded, quiet));
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(half(first)), half(second), 1);
  }

 private:
  static Vec load_vec(const float* p) { return aha::load(p); }
  static void store_vec(float* p, Vec x) { aha::store(p, x); }
};

constinit const KernelSet kModeledExact = bf16_kernels<TileModel, FormBf16Pair<TileModel>>(
    "modeled tiles exact", Isa::kAvx512, gemm_tiles<TileModel, FormBf16Pair<TileModel>>);
constinit const KernelSet kModeledBf16 = bf16_kernels<TileModel, FormBf16<TileModel>>(
    "modeled tiles bf16", Isa::kAvx512, gemm_tiles<TileModel, FormBf16<TileModel>>, &kModeledExact);

}  // namespace

const KernelSet& modeled_tile_kernels(Format format) {
  return format == Format::kBf16 ? kModeledBf16 : kModeledExact;
}

}  // namespace aha
