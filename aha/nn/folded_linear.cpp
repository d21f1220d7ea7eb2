#include "aha/nn/folded_linear.h"

#include "aha/kernels/kernel_set.h"
#include "aha/nn/plain_tensors.h"

namespace aha {
namespace {

// b + W beta of output n. Four sums, so that the additions need not wait for each other.
double shifted_bias(const AffineLinear& m, int64_t n) {
  const double bias = m.bias.defined() ? floats(m.bias)[n] : 0.0;
  if (!m.beta.defined()) return bias;
  const int64_t K = m.inputs();
  const float *w = floats(m.weight) + n * K, *beta = floats(m.beta);
  double sums[4] = {};
  for (int64_t k = 0; k < K; ++k) sums[k % 4] += double{w[k]} * beta[k];
  return bias + ((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

double factor_of(const AffineLinear& m, int64_t n) {
  return n < m.factor_outputs ? m.factor : 1.0;
}

double scale_of(const AffineLinear& m, int64_t n) {
  return factor_of(m, n) * (m.scale.defined() ? floats(m.scale)[n] : 1.0f);
}

float* data_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.data_ptr<float>() : nullptr;
}

}  // namespace

FoldedLinear folded(const AffineLinear& m) {
  const int64_t N = m.outputs(), K = m.inputs();
  FoldedLinear out{N, K, std::vector<float>(N * K), std::vector<float>(N)};
  for (int64_t n = 0; n < N; ++n) {
    const float *from = floats(m.weight) + n * K, *gamma = data_of(m.gamma);
    float* to = out.weight.data() + n * K;
    const double s = scale_of(m, n);
    if (gamma)
      for (int64_t k = 0; k < K; ++k) to[k] = static_cast<float>(s * (double{from[k]} * gamma[k]));
    else
      for (int64_t k = 0; k < K; ++k) to[k] = static_cast<float>(s * from[k]);
    out.bias[n] = static_cast<float>(s * shifted_bias(m, n));
  }
  return out;
}

void unfold(const AffineLinear& m, const float* d_weight, const float* d_bias, const AffineLinear& out) {
  const int64_t K = m.inputs();
  const float *gamma = data_of(m.gamma), *beta = data_of(m.beta);
  float *d_gamma = data_of(out.gamma), *d_beta = data_of(out.beta);
  for (int64_t n = 0; n < m.outputs(); ++n) {
    const float *g = d_weight + n * K, *w = floats(m.weight) + n * K;
    const auto s = static_cast<float>(scale_of(m, n));
    const float h = s * d_bias[n];
    float* to = data_of(out.weight) + n * K;
    data_of(out.bias)[n] = h;
    if (gamma) {
      for (int64_t k = 0; k < K; ++k) {
        to[k] = s * g[k] * gamma[k] + h * beta[k];
        d_gamma[k] += s * g[k] * w[k];
        d_beta[k] += h * w[k];
      }
    } else {
      for (int64_t k = 0; k < K; ++k) to[k] = s * g[k];
    }
    if (!m.scale.defined()) continue;
    double sum = d_bias[n] * shifted_bias(m, n);
    for (int64_t k = 0; k < K; ++k) sum += double{g[k]} * w[k] * (gamma ? gamma[k] : 1.0f);
    data_of(out.scale)[n] = static_cast<float>(factor_of(m, n) * sum);
  }
}

GradientSums::GradientSums(const std::vector<std::pair<int64_t, int64_t>>& outputs_inputs) {
  for (const auto& [outputs, inputs] : outputs_inputs) {
    at_.push_back({size_, size_ + outputs * inputs});
    size_ += outputs * (inputs + 1);
  }
}

PackedLinear::PackedLinear(Format format, const FoldedLinear& linear, Pass pass, int64_t first,
                           int64_t outputs)
    : pass_(pass), bias_(rounded_to_panel(outputs)) {
  const float* weight = linear.weight.data() + first * linear.inputs;
  packed_ = pass == Pass::kForward ? PackedWeights::forward(format, weight, outputs, linear.inputs)
                                   : PackedWeights::backward(format, weight, outputs, linear.inputs);
  std::copy_n(linear.bias.data() + first, outputs, bias_.data());
}

const PackedWeights& PackedLinear::backward(const KernelSet& kernels, int slot) const {
  if (pass_ == Pass::kBackward) return packed_;
  static thread_local PackedWeights slots[2];
  transpose_weights(kernels, packed_, slots[slot]);
  return slots[slot];
}

}  // namespace aha
