// Rotary positions on panels: a head's row becomes floats, is turned, and goes back in its form.
#pragma once

#include "aha/kernels/core/panels.h"
#include "aha/kernels/rope/rope.h"

namespace aha {
namespace {

template <bool kTransposed>
void rotate_row(float* row, int64_t width, const float* cos, const float* sin) {
  const int64_t half = width / 2;
  for (int64_t i = 0; i < half; i += kLanes) {
    const Vec low = load(row + i), high = load(row + i + half);
    const Vec low_sin = load(sin + i), high_sin = load(sin + i + half);
    const Vec low_turned = low * load(cos + i), high_turned = high * load(cos + i + half);
    store(row + i, kTransposed ? fma(high, high_sin, low_turned) : fnma(high, low_sin, low_turned));
    store(row + i + half, kTransposed ? fnma(low, low_sin, high_turned) : fma(low, high_sin, high_turned));
  }
}

template <class Form>
void rotate_heads_panels(int64_t first, int64_t end, const RopeAngles& rope, Heads& heads) {
  static thread_local AlignedBuffer<float> buffer;
  const int64_t width = heads.width();
  float* row = buffer.at_least(width);
  for (int64_t head = first; head < end; ++head)
    for (int64_t t = rope.first_token; t < heads.tokens(); ++t) {
      auto* at = Form::data(heads) + head * heads.head_stride() + t * width;
      const int64_t place = (t - rope.first_token) * width;
      for (int64_t i = 0; i < width; i += kPanel) store_panel(row + i, Form::get(at + i, heads.plane()));
      rotate_row<false>(row, width, rope.cos + place, rope.sin + place);
      for (int64_t i = 0; i < width; i += kPanel) Form::put(at + i, heads.plane(), load_panel(row + i));
    }
}

template <class Form>
void rotate_gradient_panels(int64_t first, int64_t end, const RopeAngles& rope, const RopeGradient& job) {
  static thread_local AlignedBuffer<float> buffer;
  const PanelsOf<Form> gradient(*job.gradient);
  const int64_t width = job.width, panels = width / kPanel;
  float* row = buffer.at_least(width);
  for (int64_t at = first; at < end; ++at) {
    const int64_t place = (at % job.tokens - rope.first_token) * width;
    if (place < 0) continue;
    for (int64_t h = 0; h < job.heads; ++h) {
      const int64_t panel = (job.column + h * width) / kPanel;
      for (int64_t i = 0; i < panels; ++i) store_panel(row + i * kPanel, gradient.get(at, panel + i));
      rotate_row<true>(row, width, rope.cos + place, rope.sin + place);
      for (int64_t i = 0; i < panels; ++i) gradient.put(at, panel + i, load_panel(row + i * kPanel));
    }
  }
}

}  // namespace
}  // namespace aha
