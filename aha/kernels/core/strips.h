// Reading and writing strips (32 columns of a row) of operands in each form. A Form names the element and how
// a strip becomes elements.
#pragma once

#include "aha/kernels/core/heads.h"
#include "aha/kernels/core/slopes.h"
#include "aha/kernels/core/vector.h"

namespace aha {
namespace {

struct FormF32 {
  using Element = float;
  static constexpr Format kFormat = Format::kF32;
  static Strip get(const float* p, int64_t) { return load_strip(p); }
  static void put(float* p, int64_t, const Strip& s) { store_strip(p, s); }
  static float* data(const Activations& a) { return const_cast<float*>(a.f32()); }
  static float* data(const Heads& a) { return const_cast<float*>(a.f32()); }
};

#if defined(__AVX512F__)

inline Strip widened(__m512i x) {
  const auto half = [](__m256i y) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(y), 16));
  };
  return {{half(_mm512_castsi512_si256(x)), half(_mm512_extracti64x4_epi64(x, 1))}};
}

// Hardware: tiles and narrowed(Vec first, Vec second), the rounding of 32 floats to bf16.
template <class Hardware>
struct FormBf16 {
  using Element = Bf16;
  static constexpr Format kFormat = Format::kBf16;
  static constexpr int kPlanes = 1;
  static Strip get(const Bf16* p, int64_t) { return widened(_mm512_load_si512(p)); }
  static void put(Bf16* p, int64_t, const Strip& s) {
    _mm512_store_si512(p, Hardware::narrowed(s.v[0], s.v[1]));
  }
  static Bf16* data(const Activations& a) { return const_cast<Bf16*>(a.bf16()); }
  static Bf16* data(const Heads& a) { return const_cast<Bf16*>(a.bf16()); }
};

template <class Hardware>
struct FormBf16Pair {
  using Element = Bf16;
  static constexpr Format kFormat = Format::kBf16Pair;
  static constexpr int kPlanes = 2;
  static Strip get(const Bf16* p, int64_t plane) {
    return widened(_mm512_load_si512(p)) + widened(_mm512_load_si512(p + plane));
  }
  static void put(Bf16* p, int64_t plane, const Strip& s) {
    const __m512i high = Hardware::narrowed(s.v[0], s.v[1]);
    const Strip rounded = widened(high);
    _mm512_store_si512(p, high);
    _mm512_store_si512(p + plane, Hardware::narrowed(s.v[0] - rounded.v[0], s.v[1] - rounded.v[1]));
  }
  static Bf16* data(const Activations& a) { return const_cast<Bf16*>(a.bf16()); }
  static Bf16* data(const Heads& a) { return const_cast<Bf16*>(a.bf16()); }
};

#endif

// Strips of a matrix. A view: constness is the caller's promise, as for every kernel's raw pointers.
template <class Form>
struct StripsOf {
  explicit StripsOf(const Activations& a)
      : data(Form::data(a)), step(Form::kFormat == Format::kF32 ? a.stride() : a.strips()) {}

  typename Form::Element* at(int64_t row, int64_t strip) const {
    if constexpr (Form::kFormat == Format::kF32)
      return data + row * step + strip * kStrip;
    else
      return data + ((row / kStrip) * step + strip) * Form::kPlanes * Activations::kPlane +
             (row % kStrip) * kStrip;
  }
  Strip get(int64_t row, int64_t strip) const { return Form::get(at(row, strip), Activations::kPlane); }
  void put(int64_t row, int64_t strip, const Strip& s) const {
    Form::put(at(row, strip), Activations::kPlane, s);
  }

  typename Form::Element* data;
  int64_t step;  // floats from row to row, or strips in a row
};

// Strips of slopes, the same way.
template <class Form>
struct SlopesOf : StripsOf<Form> {
  explicit SlopesOf(const Slopes& a) : StripsOf<Form>(a.wide()) {}
};

#if defined(__AVX512F__)

template <class Hardware>
struct SlopesOf<FormBf16<Hardware>> {
  explicit SlopesOf(const Slopes& a)
      : data(const_cast<uint8_t*>(a.data())), step(rounded_to_strip(a.columns()) / kStrip) {}

  uint8_t* at(int64_t row, int64_t strip) const {
    return data + ((row / kStrip * step + strip) * kStrip + row % kStrip) * kStrip;
  }
  Strip get(int64_t row, int64_t strip) const {
    const uint8_t* p = at(row, strip);
    Strip s;
    for (int i = 0; i < kVecs; ++i) {
      const __m512i q = _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p + i * kLanes)));
      s.v[i] = _mm512_cvtepi32_ps(_mm512_sub_epi32(q, _mm512_set1_epi32(Slopes::kZero))) * splat(Slopes::kStep);
    }
    return s;
  }
  void put(int64_t row, int64_t strip, const Strip& s) const {
    uint8_t* p = at(row, strip);
    for (int i = 0; i < kVecs; ++i) {
      const __m512i q = _mm512_cvtps_epi32(fma(s.v[i], splat(1 / Slopes::kStep), splat(Slopes::kZero)));
      _mm_store_si128(reinterpret_cast<__m128i*>(p + i * kLanes), _mm512_cvtusepi32_epi8(q));
    }
  }

  uint8_t* data;
  int64_t step;  // strips in a row
};

#endif

// Strips of matrix rows that are cut into heads.
template <class Form>
struct HeadStripsOf {
  explicit HeadStripsOf(const Heads& a)
      : data(Form::data(a)),
        rows(a.row_offsets()),
        head_stride(a.head_stride()),
        width(a.width()),
        plane(a.plane()) {}

  // Address of the columns of one strip, to be moved by a row's offset.
  typename Form::Element* column(int64_t column) const {
    return data + column / width * head_stride + column % width;
  }
  typename Form::Element* data;
  const int64_t* rows;
  int64_t head_stride, width, plane;
};

}  // namespace
}  // namespace aha
