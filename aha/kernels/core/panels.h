// Reading and writing panels (32 columns of a row) of operands in each form. A Form names the element and how
// a panel becomes elements.
#pragma once

#include "aha/kernels/core/activation_derivative.h"
#include "aha/kernels/core/heads.h"
#include "aha/kernels/core/vector.h"

namespace aha {
namespace {

struct FormF32 {
  using Element = float;
  static constexpr Format kFormat = Format::kF32;
  static Panel get(const float* p, int64_t) { return load_panel(p); }
  static void put(float* p, int64_t, const Panel& s) { store_panel(p, s); }
  static float* data(const Activations& a) { return const_cast<float*>(a.f32()); }
  static float* data(const Heads& a) { return const_cast<float*>(a.f32()); }
};

#if defined(__AVX512F__)

inline Panel widened(__m512i x) {
  const auto half = [](__m256i y) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(y), 16));
  };
  return {{half(_mm512_castsi512_si256(x)), half(_mm512_extracti64x4_epi64(x, 1))}};
}

struct Bf16Elements {
  using Element = Bf16;
  static Bf16* data(const Activations& a) { return const_cast<Bf16*>(a.bf16()); }
  static Bf16* data(const Heads& a) { return const_cast<Bf16*>(a.bf16()); }
};

// Hardware: tiles and narrowed(Vec first, Vec second), the rounding of 32 floats to bf16.
template <class Hardware>
struct FormBf16 : Bf16Elements {
  static constexpr Format kFormat = Format::kBf16;
  static constexpr int kPlanes = 1;
  static Panel get(const Bf16* p, int64_t) { return widened(_mm512_load_si512(p)); }
  static void put(Bf16* p, int64_t, const Panel& s) {
    _mm512_store_si512(p, Hardware::narrowed(s.v[0], s.v[1]));
  }
};

template <class Hardware>
struct FormBf16Pair : Bf16Elements {
  static constexpr Format kFormat = Format::kBf16Pair;
  static constexpr int kPlanes = 2;
  static Panel get(const Bf16* p, int64_t plane) {
    return widened(_mm512_load_si512(p)) + widened(_mm512_load_si512(p + plane));
  }
  static void put(Bf16* p, int64_t plane, const Panel& s) {
    const __m512i high = Hardware::narrowed(s.v[0], s.v[1]);
    const Panel rounded = widened(high);
    _mm512_store_si512(p, high);
    _mm512_store_si512(p + plane, Hardware::narrowed(s.v[0] - rounded.v[0], s.v[1] - rounded.v[1]));
  }
};

#endif

// Panels of a matrix. A view: constness is the caller's promise, as for every kernel's raw pointers.
template <class Form>
struct PanelsOf {
  explicit PanelsOf(const Activations& a)
      : data(Form::data(a)), step(Form::kFormat == Format::kF32 ? a.stride() : a.panels()) {}

  typename Form::Element* at(int64_t row, int64_t panel) const {
    if constexpr (Form::kFormat == Format::kF32)
      return data + row * step + panel * kPanel;
    else
      return data + ((row / kPanel) * step + panel) * Form::kPlanes * Activations::kPlane +
             (row % kPanel) * kPanel;
  }
  Panel get(int64_t row, int64_t panel) const { return Form::get(at(row, panel), Activations::kPlane); }
  void put(int64_t row, int64_t panel, const Panel& s) const {
    Form::put(at(row, panel), Activations::kPlane, s);
  }

  typename Form::Element* data;
  int64_t step;  // floats from row to row, or panels in a row
};

// Panels of activation derivatives, the same way.
template <class Form>
struct ActivationDerivativeOf : PanelsOf<Form> {
  explicit ActivationDerivativeOf(const ActivationDerivative& a) : PanelsOf<Form>(a.wide()) {}
};

#if defined(__AVX512F__)

template <class Hardware>
struct ActivationDerivativeOf<FormBf16<Hardware>> {
  explicit ActivationDerivativeOf(const ActivationDerivative& a)
      : data(const_cast<uint8_t*>(a.data())), step(rounded_to_panel(a.columns()) / kPanel) {}

  uint8_t* at(int64_t row, int64_t panel) const {
    return data + ((row / kPanel * step + panel) * kPanel + row % kPanel) * kPanel;
  }
  Panel get(int64_t row, int64_t panel) const {
    const uint8_t* p = at(row, panel);
    Panel s;
    for (int i = 0; i < kVecs; ++i) {
      const __m512i q =
          _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p + i * kLanes)));
      s.v[i] = _mm512_cvtepi32_ps(_mm512_sub_epi32(q, _mm512_set1_epi32(ActivationDerivative::kZero))) *
               splat(ActivationDerivative::kStep);
    }
    return s;
  }
  void put(int64_t row, int64_t panel, const Panel& s) const {
    uint8_t* p = at(row, panel);
    for (int i = 0; i < kVecs; ++i) {
      const __m512i q = _mm512_cvtps_epi32(
          fma(s.v[i], splat(1 / ActivationDerivative::kStep), splat(ActivationDerivative::kZero)));
      _mm_store_si128(reinterpret_cast<__m128i*>(p + i * kLanes), _mm512_cvtusepi32_epi8(q));
    }
  }

  uint8_t* data;
  int64_t step;  // panels in a row
};

#endif

// Panels of matrix rows that are cut into heads.
template <class Form>
struct HeadPanelsOf {
  explicit HeadPanelsOf(const Heads& a)
      : data(Form::data(a)),
        rows(a.row_offsets()),
        head_stride(a.head_stride()),
        width(a.width()),
        plane(a.plane()) {}

  // Address of the columns of one panel, to be moved by a row's offset.
  typename Form::Element* column(int64_t column) const {
    return data + column / width * head_stride + column % width;
  }
  typename Form::Element* data;
  const int64_t* rows;
  int64_t head_stride, width, plane;
};

}  // namespace
}  // namespace aha
