#include <cmath>

#include "aha/kernels/sets/kernels_ref.h"

namespace aha {

void layer_norm_ref(int64_t first, int64_t end, const float* x, int64_t stride, float epsilon,
                    Activations& xhat, float* rstd) {
  const int64_t width = xhat.columns();
  for (int64_t row = first; row < end; ++row) {
    const float* p = x + row * stride;
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < width; ++c) mean += p[c];
    mean /= static_cast<double>(width);
    for (int64_t c = 0; c < width; ++c) variance += (p[c] - mean) * (p[c] - mean);
    variance /= static_cast<double>(width);
    const double scale = 1 / std::sqrt(variance + epsilon);
    for (int64_t c = 0; c < width; ++c) xhat.set(row, c, static_cast<float>((p[c] - mean) * scale));
    if (rstd) rstd[row] = static_cast<float>(scale);
  }
}

void layer_norm_backward_ref(int64_t first, int64_t end, const LayerNormGradient& job) {
  const int64_t width = job.xhat->columns();
  for (int64_t row = first; row < end; ++row) {
    const float* g = job.gradient + row * job.gradient_stride;
    float* dx = job.dx + row * job.dx_stride;
    double mean = 0, slope = 0;
    for (int64_t c = 0; c < width; ++c) {
      mean += g[c];
      slope += double{g[c]} * job.xhat->at(row, c);
    }
    mean /= static_cast<double>(width);
    slope /= static_cast<double>(width);
    for (int64_t c = 0; c < width; ++c) {
      dx[c] = static_cast<float>(dx[c] + job.rstd[row] * (g[c] - mean - job.xhat->at(row, c) * slope));
      if (job.dx_operand) job.dx_operand->set(row, c, dx[c]);
    }
  }
}

}  // namespace aha
