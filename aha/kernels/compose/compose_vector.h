// Composing patch rows on strips. The weights of a patch's pixels are gathered once and repeated for the
// three channels.
#pragma once

#include <cstring>

#include "aha/kernels/compose/compose.h"
#include "aha/kernels/core/strips.h"

namespace aha {
namespace {

template <class Form>
void compose_strips(const PatchSource& source, const float* keep, int64_t first_row, Activations& rows) {
  static thread_local AlignedBuffer<float> scratch;
  const StripsOf<Form> out(rows);
  const int64_t area = source.area(), columns = source.padded_columns();
  const int64_t room = columns + source.padded_area();  // the last copy may write beyond its area
  float* weights = scratch.at_least(room);
  std::memset(weights, 0, room * sizeof(float));
  const int64_t prefix = source.geometry().prefix_tokens;
  for (int64_t token = 0; token < prefix; ++token)
    for (int64_t s = 0; s < rows.strips(); ++s) out.put(first_row + token, s, Strip{});
  for (int64_t patch = 0; patch < source.geometry().patches(); ++patch) {
    const int32_t* region = source.region(patch);
    for (int64_t i = 0; i < area; i += kLanes) store(weights + i, gather(keep, region + i));
    std::memcpy(weights + area, weights, area * sizeof(float));
    std::memcpy(weights + 2 * area, weights, area * sizeof(float));
    const float *base = source.base(patch), *difference = source.difference(patch);
    for (int64_t column = 0; column < columns; column += kStrip) {
      Strip x;
      for (int i = 0; i < kVecs; ++i) {
        const int64_t at = column + i * kLanes;
        x.v[i] = fma(load(weights + at), load(difference + at), load(base + at));
      }
      out.put(first_row + prefix + patch, column / kStrip, x);
    }
  }
}

inline void compose_backward_vector(const PatchSource& source, const float* gradient, int64_t stride,
                                    float* d_keep) {
  static thread_local AlignedBuffer<float> scratch;
  const int64_t area = source.area(), columns = source.padded_columns();
  float* products = scratch.at_least(columns);
  for (int64_t j = 0; j < source.regions(); ++j) d_keep[j] = 0;
  for (int64_t patch = 0; patch < source.geometry().patches(); ++patch) {
    const float* g = gradient + (source.geometry().prefix_tokens + patch) * stride;
    const float* difference = source.difference(patch);
    for (int64_t column = 0; column < columns; column += kStrip)
      store_strip(products + column, load_strip(g + column) * load_strip(difference + column));
    const int32_t* region = source.region(patch);
    for (int64_t i = 0; i < area; ++i)
      d_keep[region[i]] += products[i] + products[area + i] + products[2 * area + i];
  }
}

}  // namespace
}  // namespace aha
