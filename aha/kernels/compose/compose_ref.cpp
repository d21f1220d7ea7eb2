#include <vector>

#include "aha/kernels/sets/kernels_ref.h"

namespace aha {

void compose_ref(const PatchSource& source, const float* keep, int64_t first_row, Activations& rows) {
  const PatchGeometry& geometry = source.geometry();
  for (int64_t token = 0; token < geometry.tokens(); ++token)
    for (int64_t column = 0; column < geometry.columns(); ++column) {
      float x = 0;
      if (const int64_t patch = token - geometry.prefix_tokens; patch >= 0)
        x = source.base(patch)[column] +
            keep[source.region(patch)[column % source.area()]] * source.difference(patch)[column];
      rows.set(first_row + token, column, x);
    }
}

void compose_backward_ref(const PatchSource& source, const float* gradient, int64_t stride, float* d_keep) {
  const PatchGeometry& geometry = source.geometry();
  std::vector<double> sums(source.regions());
  for (int64_t patch = 0; patch < geometry.patches(); ++patch)
    for (int64_t column = 0; column < geometry.columns(); ++column)
      sums[source.region(patch)[column % source.area()]] +=
          double{gradient[(geometry.prefix_tokens + patch) * stride + column]} *
          source.difference(patch)[column];
  for (int64_t j = 0; j < source.regions(); ++j) d_keep[j] = static_cast<float>(sums[j]);
}

}  // namespace aha
