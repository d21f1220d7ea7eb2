// SwiGLU on panels.
#pragma once

#include "aha/kernels/core/panels.h"
#include "aha/kernels/swiglu/swiglu.h"

namespace aha {
namespace {

// e^-a stays finite up to a = -80, where sigma is 2e-35: as good as 0.
inline Vec sigmoid(Vec a) {
  return reciprocal(splat(1.0f) + exponential(splat(0.0f) - max(splat(-80.0f), a)));
}

template <class Form>
void swiglu_panels(int64_t first, int64_t end, const Activations& gates, Activations& out) {
  const PanelsOf<Form> from(gates), to(out);
  const int64_t half = out.panels();
  for (int64_t r = first; r < end; ++r)
    for (int64_t s = 0; s < half; ++s) {
      const Panel a = from.get(r, s), b = from.get(r, s + half);
      Panel y;
      for (int i = 0; i < kVecs; ++i) y.v[i] = a.v[i] * sigmoid(a.v[i]) * b.v[i];
      to.put(r, s, y);
    }
}

template <class Form>
void swiglu_backward_panels(int64_t first, int64_t end, const Activations& gates, const Activations& dout,
                            Activations& dgates) {
  const PanelsOf<Form> from(gates), gradient(dout), to(dgates);
  const int64_t half = dout.panels();
  for (int64_t r = first; r < end; ++r)
    for (int64_t s = 0; s < half; ++s) {
      const Panel a = from.get(r, s), b = from.get(r, s + half), g = gradient.get(r, s);
      Panel da, db;
      for (int i = 0; i < kVecs; ++i) {
        const Vec on = sigmoid(a.v[i]);
        da.v[i] = g.v[i] * b.v[i] * on * fma(a.v[i], splat(1.0f) - on, splat(1.0f));
        db.v[i] = g.v[i] * a.v[i] * on;
      }
      to.put(r, s, da);
      to.put(r, s + half, db);
    }
}

}  // namespace
}  // namespace aha
