#include "aha/nn/vit_relevance.h"

#include <numeric>

#include "aha/kernels/elementwise/elementwise.h"
#include "aha/nn/row_gemm.h"

namespace aha {
namespace {

// One row of a head as floats; `buffer` is used where they are kept in another form.
const float* row_from(const Heads& heads, int64_t image, int64_t head, int64_t token,
                      std::vector<float>& buffer) {
  if (heads.format() == Format::kF32) return heads.f32() + heads.offset(image, head) + token * heads.width();
  const Bf16* high = heads.bf16() + heads.offset(image, head) + token * heads.width();
  for (int64_t c = 0; c < heads.width(); ++c) buffer[c] = float_from_bf16(high[c]);
  if (heads.format() == Format::kBf16Pair)
    for (int64_t c = 0; c < heads.width(); ++c) buffer[c] += float_from_bf16(high[heads.plane() + c]);
  return buffer.data();
}

// (tokens, width), contiguous.
Tensor matrix_from(const Heads& heads, int64_t image, int64_t head) {
  Tensor out = torch::empty({heads.tokens(), heads.width()});
  std::vector<float> buffer(heads.width());
  for (int64_t t = 0; t < heads.tokens(); ++t)
    std::copy_n(row_from(heads, image, head, t, buffer), heads.width(),
                out.data_ptr<float>() + t * heads.width());
  return out;
}

}  // namespace

void class_attention(const VitBlockState& s, int64_t image, float* out) {
  const int64_t H = s.q.heads(), T = s.k.tokens(), d = s.k.width();
  std::vector<float> query_buffer(d), key_buffer(d);
  for (int64_t h = 0; h < H; ++h) {
    const float* query = row_from(s.q, image, h, 0, query_buffer);
    const float log_sum = s.log_sum_exp.data()[(image * H + h) * T];
    for (int64_t t = 0; t < T; ++t) {
      const float* key = row_from(s.k, image, h, t, key_buffer);
      out[h * T + t] = std::exp(std::inner_product(query, query + d, key, 0.f) - log_sum);
    }
  }
}

void add_relevance(const KernelSet& kernels, const VitBlockState& s, const Heads& dout, int64_t image,
                   float* row) {
  const int64_t H = s.q.heads(), Q = s.q.tokens(), T = s.k.tokens();
  std::vector<float> products(Q * T, 0.f);  // sum over heads of P * dP
  for (int64_t h = 0; h < H; ++h) {
    Tensor P = linear_by_rows(kernels, matrix_from(s.q, image, h), matrix_from(s.k, image, h))
                   .contiguous();  // (Q, T)
    softmax_rows(kernels, Q, T, P.data_ptr<float>(), T, nullptr);
    const Tensor dP =
        linear_by_rows(kernels, matrix_from(dout, image, h), matrix_from(s.v, image, h)).contiguous();
    const float *p = P.data_ptr<float>(), *d = dP.data_ptr<float>();
    for (int64_t i = 0; i < Q * T; ++i) products[i] += p[i] * d[i];
  }
  std::vector<float> sum(row, row + T);
  for (int64_t q = 0; q < Q; ++q)
    for (int64_t t = 0; t < T; ++t)
      sum[t] += row[q] * std::max(0.f, products[q * T + t] / static_cast<float>(H));
  std::ranges::copy(sum, row);
}

}  // namespace aha
