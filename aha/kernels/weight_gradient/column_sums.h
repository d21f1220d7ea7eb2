// The gradient of a bias: sums += the columns of the first rows of dy.
#pragma once

#include "aha/kernels/core/strips.h"

namespace aha {
namespace {

template <class Form>
void add_column_sums(int64_t rows, const Activations& dy, float* sums) {
  const StripsOf<Form> strips(dy);
  for (int64_t s = 0; s < dy.strips(); ++s) {
    Strip total = load_strip(sums + s * kStrip);
    for (int64_t r = 0; r < rows; ++r) total = total + strips.get(r, s);
    store_strip(sums + s * kStrip, total);
  }
}

}  // namespace
}  // namespace aha
