#include "aha/kernels/layer_norm/fold.h"

#include <algorithm>

#include "aha/base/error.h"
#include "aha/kernels/core/activations.h"

namespace aha {
namespace {

int64_t inputs_of(std::span<const float> weights, std::span<const float> bias) {
  if (bias.empty() || weights.size() % bias.size() != 0)
    throw input_error("weights: expected a multiple of {} values (one row an output), found {}", bias.size(),
                      weights.size());
  return static_cast<int64_t>(weights.size() / bias.size());
}

}  // namespace

void fold_layer_norm(std::span<float> weights, std::span<float> bias, std::span<const float> gamma,
                     std::span<const float> beta) {
  const int64_t inputs = inputs_of(weights, bias);
  if (std::ssize(gamma) != inputs || std::ssize(beta) != inputs)
    throw input_error("layer norm: expected {} factors and offsets, found {} and {}", inputs, gamma.size(),
                      beta.size());
  for (size_t n = 0; n < bias.size(); ++n) {
    float* row = weights.data() + n * inputs;
    double sum = bias[n];
    for (int64_t k = 0; k < inputs; ++k) {
      sum += double{row[k]} * beta[k];
      row[k] *= gamma[k];
    }
    bias[n] = static_cast<float>(sum);
  }
}

void scale_outputs(std::span<float> weights, std::span<float> bias, int64_t first, int64_t count,
                   float factor) {
  const int64_t inputs = inputs_of(weights, bias);
  if (first < 0 || count < 0 || first + count > std::ssize(bias))
    throw input_error("outputs to scale: expected some of 0..{}, found {}..{}", bias.size() - 1, first,
                      first + count - 1);
  for (float& w : weights.subspan(first * inputs, count * inputs)) w *= factor;
  for (float& b : bias.subspan(first, count)) b *= factor;
}

void scale_outputs(std::span<float> weights, std::span<float> bias, std::span<const float> factor) {
  const int64_t inputs = inputs_of(weights, bias);
  if (factor.size() != bias.size())
    throw input_error("outputs to scale: expected {} factors, found {}", bias.size(), factor.size());
  for (size_t n = 0; n < bias.size(); ++n) {
    for (float& w : weights.subspan(n * inputs, inputs)) w *= factor[n];
    bias[n] *= factor[n];
  }
}

AlignedBuffer<float> padded_bias(std::span<const float> bias) {
  AlignedBuffer<float> padded(rounded_to_strip(std::ssize(bias)));
  std::copy(bias.begin(), bias.end(), padded.data());
  return padded;
}

}  // namespace aha
