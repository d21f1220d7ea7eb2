#include "aha/nn/block_relevance.h"

#include <cmath>

namespace aha {
namespace {

Tensor relevance_ratio(const Tensor& a, const Tensor& b) {
  auto divisor = b + 1e-9;
  divisor.masked_fill_(divisor == 0, 1e-9);
  return (a / divisor).masked_fill_(b == 0, 0);
}

// One number for each image, to be multiplied with x.
Tensor sum_of_image(const Tensor& x) {
  std::vector<int64_t> one_each(x.dim(), 1);
  one_each[0] = x.size(0);
  return x.flatten(1).sum(1).view(one_each);
}

}  // namespace

Tensor linear_relevance(const Tensor& weight, const Tensor& x, const Tensor& relevance) {
  const auto parts = [](const Tensor& t) { return torch::cat({t.clamp_min(0), t.clamp_max(0)}, -1); };
  const auto w = parts(weight), both = parts(x);  // (out, 2 in), (B, T, 2 in)
  const auto share = both * relevance_ratio(relevance, both.matmul(w.t())).matmul(w);
  const auto D = x.size(-1);
  return share.slice(-1, 0, D) + share.slice(-1, D);
}

std::pair<Tensor, Tensor> sum_relevance(const Tensor& a, const Tensor& b, const Tensor& relevance) {
  const auto ratio = relevance_ratio(relevance, a + b);
  const auto u = a * ratio, v = b * ratio;
  const auto sum_u = sum_of_image(u), sum_v = sum_of_image(v);
  const auto whole = sum_u.abs() + sum_v.abs(), sum = sum_of_image(relevance);
  const auto scaled = [&](const Tensor& part, const Tensor& sum_of_part) {
    return part * relevance_ratio(relevance_ratio(sum_of_part.abs(), whole) * sum, sum_of_part);
  };
  return {scaled(u, sum_u), scaled(v, sum_v)};
}

std::pair<Tensor, Tensor> product_relevance(const Tensor& a, const Tensor& b, const Tensor& relevance) {
  const auto ratio = relevance_ratio(relevance, a.matmul(b));
  return {a * ratio.matmul(b.transpose(-2, -1)) / 2, b * a.transpose(-2, -1).matmul(ratio) / 2};
}

BlockRelevance block_relevance(TransformerBlockImpl& block, const Tensor& x, const Tensor& relevance,
                               const RopeTable* rope) {
  const torch::NoGradGuard no_grad;
  const auto B = x.size(0), T = x.size(1), D = x.size(2), heads = block.options.heads, d = D / heads;
  auto& attn = *block.attn;
  auto& mlp = *block.mlp;
  const bool gated = block.options.swiglu;
  const auto scaled = [](LayerScale& scale, const Tensor& branch) {
    return scale.is_empty() ? branch : scale(branch);
  };

  const auto normed1 = block.norm1(x);
  const auto thirds = attn.heads_of(normed1, rope);  // 3 x (B, heads, T, d)
  const auto &q = thirds[0], &k = thirds[1], &v = thirds[2];
  const auto keys = k.transpose(-2, -1);  // (B, heads, d, T)
  const auto attention = torch::softmax(q.matmul(keys) / std::sqrt(static_cast<double>(d)), -1);
  const auto context = attention.matmul(v).transpose(1, 2).reshape({B, T, D});
  const auto branch1 = scaled(block.ls1, attn.proj(context));
  const auto middle = x + branch1;
  const auto normed2 = block.norm2(middle);
  const auto hidden = gated ? torch::silu(mlp.w1(normed2)) * mlp.w2(normed2) : torch::gelu(mlp.fc1(normed2));
  Linear& last = gated ? mlp.w3 : mlp.fc2;

  const auto [skip2, of_mlp] = sum_relevance(middle, scaled(block.ls2, last(hidden)), relevance);
  const auto of_hidden = linear_relevance(last->weight, hidden, of_mlp);
  const auto of_normed2 = gated ? linear_relevance(mlp.w1->weight, normed2, of_hidden / 2) +
                                      linear_relevance(mlp.w2->weight, normed2, of_hidden / 2)
                                : linear_relevance(mlp.fc1->weight, normed2, of_hidden);
  const auto [skip1, of_attn] = sum_relevance(x, branch1, skip2 + of_normed2);
  const auto of_context = linear_relevance(attn.proj->weight, context, of_attn)
                              .view({B, T, heads, d})
                              .transpose(1, 2);  // (B, heads, T, d)
  const auto [of_attention, of_v] = product_relevance(attention, v, of_context);
  const auto [of_q, of_keys] = product_relevance(q, keys, of_attention);
  const auto of_qkv = torch::stack({of_q, of_keys.transpose(-2, -1), of_v})  // (3, B, heads, T, d)
                          .permute({1, 3, 0, 2, 4})
                          .reshape({B, T, 3 * D});
  return {of_attention, skip1 + linear_relevance(attn.qkv->weight, normed1, of_qkv)};
}

}  // namespace aha
