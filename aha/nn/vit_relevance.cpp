#include "aha/nn/vit_relevance.h"

#include "aha/kernels/attention/attention.h"

namespace aha {
namespace {

void make_room(Tensor& kept, at::IntArrayRef sizes) {
  const bool free = kept.defined() && kept.use_count() == 1 && kept.storage().use_count() == 1;
  if (!free || kept.sizes() != sizes) kept = torch::empty(sizes);
}

}  // namespace

AttentionSource attention_of(const VitBlockState& s, const Heads* dout) {
  return {&s.q, &s.k, &s.v, &s.log_sum_exp, dout};
}

void ShownAttention::read(const KernelSet& kernels, const AttentionSource& from, int64_t image) {
  const int64_t H = from.q->heads(), Q = from.q->tokens(), T = from.k->tokens();
  make_room(attention_, {H, Q, T});
  if (from.dout)
    make_room(gradient_, {H, Q, T});
  else
    gradient_ = Tensor();
  attention_weights(kernels, {from.q, from.k, from.v, image + 1},
                    {image, Q, from.log_sum_exp->data(), attention_.data_ptr<float>(), from.dout,
                     from.dout ? gradient_.data_ptr<float>() : nullptr});
}

void class_attention(const KernelSet& kernels, const VitBlockState& s, int64_t image, float* out) {
  attention_weights(kernels, {&s.q, &s.k, &s.v, image + 1}, {image, 1, s.log_sum_exp.data(), out});
}

void add_relevance(const Tensor& attention, const Tensor& gradient, float* row) {
  const int64_t H = attention.size(0), Q = attention.size(1), T = attention.size(2);
  const float *P = attention.data_ptr<float>(), *dP = gradient.data_ptr<float>();
  std::vector<float> sum(row, row + T), products(T);
  for (int64_t q = 0; q < Q; ++q) {
    std::ranges::fill(products, 0.f);
    for (int64_t h = 0; h < H; ++h) {
      const float *p = P + (h * Q + q) * T, *d = dP + (h * Q + q) * T;
#pragma omp simd
      for (int64_t t = 0; t < T; ++t) products[t] += p[t] * d[t];
    }
#pragma omp simd
    for (int64_t t = 0; t < T; ++t) sum[t] += row[q] * std::max(0.f, products[t] / static_cast<float>(H));
  }
  std::ranges::copy(sum, row);
}

void add_contributions(const Tensor& attention, const Tensor& gradient, float* row) {
  const int64_t rows = attention.size(0) * attention.size(1), T = attention.size(2);
  const float *P = attention.data_ptr<float>(), *dP = gradient.data_ptr<float>();
  for (int64_t r = 0; r < rows; ++r)
#pragma omp simd
    for (int64_t t = 0; t < T; ++t) row[t] += P[r * T + t] * dP[r * T + t];
}

}  // namespace aha
