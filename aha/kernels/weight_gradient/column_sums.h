// The gradient of a bias: sums += the columns of the first rows of dy.
#pragma once

#include "aha/kernels/core/panels.h"

namespace aha {
namespace {

template <class Form>
void add_column_sums(int64_t rows, const Activations& dy, float* sums) {
  const PanelsOf<Form> panels(dy);
  for (int64_t s = 0; s < dy.panels(); ++s) {
    Panel total = load_panel(sums + s * kPanel);
    for (int64_t r = 0; r < rows; ++r) total = total + panels.get(r, s);
    store_panel(sums + s * kPanel, total);
  }
}

}  // namespace
}  // namespace aha
