#include "aha/nn/folded_product.h"

namespace aha {
namespace {

double shifted_bias(const MasterProduct& m, int64_t n) {
  double sum = m.bias[n];
  if (m.beta)
    for (int64_t k = 0; k < m.inputs; ++k) sum += double{m.weight[n * m.inputs + k]} * m.beta[k];
  return sum;
}

}  // namespace

FoldedProduct folded(const MasterProduct& m) {
  FoldedProduct out{std::vector<float>(m.outputs * m.inputs), AlignedBuffer<float>(m.outputs)};
  for (int64_t n = 0; n < m.outputs; ++n) {
    const float* from = m.weight + n * m.inputs;
    float* to = out.weight.data() + n * m.inputs;
    const float s = m.scale[n];
    if (m.gamma)
      for (int64_t k = 0; k < m.inputs; ++k) to[k] = s * from[k] * m.gamma[k];
    else
      for (int64_t k = 0; k < m.inputs; ++k) to[k] = s * from[k];
    out.bias[n] = static_cast<float>(s * shifted_bias(m, n));
  }
  return out;
}

void unfold(const MasterProduct& m, const float* d_weight, const float* d_bias, const MasterGradient& out) {
  const int64_t K = m.inputs;
  for (int64_t n = 0; n < m.outputs; ++n) {
    const float *g = d_weight + n * K, *w = m.weight + n * K;
    const float s = m.scale[n], h = s * d_bias[n];
    float* to = out.weight + n * K;
    out.bias[n] = h;
    if (m.gamma) {
      for (int64_t k = 0; k < K; ++k) {
        to[k] = s * g[k] * m.gamma[k] + h * m.beta[k];
        out.gamma[k] += s * g[k] * w[k];
        out.beta[k] += h * w[k];
      }
    } else {
      for (int64_t k = 0; k < K; ++k) to[k] = s * g[k];
    }
    if (!out.scale) continue;
    double sum = d_bias[n] * shifted_bias(m, n);
    for (int64_t k = 0; k < K; ++k) sum += double{g[k]} * w[k] * (m.gamma ? m.gamma[k] : 1.0f);
    out.scale[n] = static_cast<float>(sum);
  }
}

}  // namespace aha
