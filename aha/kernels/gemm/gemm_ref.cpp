#include "aha/kernels/sets/kernels_ref.h"

namespace aha {
namespace {

float bias_at(const float* bias, int64_t n) {
  return bias ? bias[n] : 0.0f;
}

void finish(const StoreRows& e, int64_t, int64_t row, int64_t n, double sum) {
  e.out[row * e.stride + n] = static_cast<float>(sum + bias_at(e.bias, n));
}

void finish(const AddToRows& e, int64_t, int64_t row, int64_t n, double sum) {
  float& out = e.out[row * e.stride + n];
  out = static_cast<float>(out + (sum + bias_at(e.bias, n)));
}

void finish(const StoreWithTable& e, int64_t columns, int64_t row, int64_t n, double sum) {
  e.out[row * e.stride + n] = static_cast<float>(sum + e.table[row % e.period * columns + n]);
}

void finish(const StoreActivations& e, int64_t, int64_t row, int64_t n, double sum) {
  if (n < e.out->columns()) e.out->set(row, n, static_cast<float>(sum + bias_at(e.bias, n)));
}

void finish(const GeluToActivations& e, int64_t, int64_t row, int64_t n, double sum) {
  if (n >= e.out->columns()) return;
  const GeluValue gelu = gelu_value(sum + bias_at(e.bias, n));
  e.out->set(row, n, static_cast<float>(gelu.value));
  if (e.derivative) e.derivative->set(row, n, static_cast<float>(gelu.derivative));
}

void finish(const ScaleToActivations& e, int64_t, int64_t row, int64_t n, double sum) {
  if (n < e.out->columns()) e.out->set(row, n, static_cast<float>(sum * e.factor->at(row, n)));
}

void finish(const StoreHeads& e, int64_t, int64_t row, int64_t n, double sum) {
  int64_t column = n;
  for (Heads* heads : e.sections) {
    if (!heads) return;
    if (column < heads->columns()) {
      heads->set(row / heads->tokens(), column / heads->width(), row % heads->tokens(),
                 column % heads->width(), static_cast<float>(sum + bias_at(e.bias, n)));
      return;
    }
    column -= heads->columns();
  }
}

}  // namespace

void gemm_ref(const GemmPart& part, const Activations& x, const PackedWeights& weights,
              const Epilogue& epilogue) {
  const int64_t columns = weights.padded_outputs();
  for (int64_t row = part.first_row; row < part.end_row; ++row)
    for (int64_t n = part.first_column; n < part.end_column; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < weights.inputs(); ++k) sum += double{x.at(row, k)} * weights.at(n, k);
      std::visit([&](const auto& e) { finish(e, columns, row, n, sum); }, epilogue);
    }
}

}  // namespace aha
