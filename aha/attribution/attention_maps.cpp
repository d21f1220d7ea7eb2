#include "aha/attribution/attention_maps.h"

namespace aha {

Tensor mean_attention(const Tensor& attention) {
  return attention.mean(0);
}

Tensor with_skip(const Tensor& matrix) {
  const auto sum = matrix + torch::eye(matrix.size(0), matrix.size(1), matrix.options());
  return sum / sum.sum(1, true);
}

Tensor attention_times_gradient(const Tensor& attention, const Tensor& gradient, HeadRule rule) {
  const auto heads = attention.size(0);
  auto sum = torch::zeros({attention.size(1), attention.size(2)}, attention.options());
  for (int64_t k = 0; k < heads; ++k)  // the sum stays in the cache
    rule == HeadRule::kMeanFirst ? sum.addcmul_(attention[k], gradient[k])
                                 : sum.add_((attention[k] * gradient[k]).relu_());
  return sum.div_(static_cast<double>(heads)).relu_();
}

Tensor head_importance(const Tensor& attention, const Tensor& gradient) {
  const auto mean = attention.transpose(1, 2).bmm(gradient).abs().mean({1, 2});
  return mean / mean.sum();
}

Tensor attention_by_importance(const Tensor& attention, const Tensor& gradient) {
  return (attention * head_importance(attention, gradient).view({-1, 1, 1})).sum(0);
}

Tensor row_times(const Tensor& row, const Tensor& matrix) {
  return row.slice(0, 0, matrix.size(0)).matmul(matrix);
}

Tensor transition_step(const Tensor& row, const Tensor& attention, bool last_block, bool last_twice) {
  const auto mean = mean_attention(attention);
  const auto state = last_block ? row_times(row, mean) : row;
  return last_block && !last_twice ? state : state + row_times(state, mean);
}

Tensor attention_cam(const Tensor& attention, const Tensor& gradient, int64_t prefix, bool pooled) {
  const auto a = attention.select(1, 0).slice(1, prefix);  // (heads, n)
  auto q = gradient.select(1, 0).slice(1, prefix);
  if (pooled) q = q.mean(1, true);
  return (a * q).mean(0).relu();
}

Tensor legrad_share(const Tensor& gradient) {
  return gradient.relu().flatten(0, 1).sum(0) / static_cast<double>(gradient.size(0) * gradient.size(2));
}

Tensor direct_share(const Tensor& attention, const Tensor& gradient, bool relu) {
  const Tensor products = attention * gradient;
  return (relu ? products.clamp_min(0) : products).flatten(0, 1).sum(0);
}

Tensor integrated_row(const Tensor& path_mean_gradient) {
  return path_mean_gradient.relu().mean(0);
}

}  // namespace aha
