#include "aha/attribution/attention_maps.h"

namespace aha {
namespace {

// The class token's row without the columns of the prefix: (B, ..., T, T) -> (B, ..., n)
Tensor class_row(const Tensor& square, int64_t prefix) {
  return square.select(-2, 0).slice(-1, prefix);
}

}  // namespace

Tensor rollout_patches(const std::vector<Tensor>& attention, int first, int64_t prefix) {
  const auto identity = torch::eye(attention[0].size(-1), attention[0].options());
  Tensor joint = identity.expand({attention[0].size(0), -1, -1});  // (B, T, T)
  for (size_t l = first; l < attention.size(); ++l) {
    const auto with_skip = attention[l].mean(1) + identity;
    joint = (with_skip / with_skip.sum(-1, true)).matmul(joint);
  }
  return class_row(joint, prefix);
}

Tensor chefer_patches(const std::vector<Tensor>& attention, const std::vector<Tensor>& gradients,
                      int64_t prefix) {
  const auto identity = torch::eye(attention[0].size(-1), attention[0].options());
  Tensor relevance = identity.expand({attention[0].size(0), -1, -1});  // (B, T, T)
  for (size_t l = 0; l < attention.size(); ++l)
    relevance = relevance + (gradients[l] * attention[l]).mean(1).relu().matmul(relevance);
  return class_row(relevance, prefix);
}

Tensor attention_cam_patches(const Tensor& attention, const Tensor& gradient, int64_t prefix, bool pooled) {
  const auto a = class_row(attention, prefix);  // (B, heads, n)
  auto q = class_row(gradient, prefix);
  if (pooled) q = q.mean(-1, true);
  return (a * q).mean(1).relu();
}

Tensor attention_gradient_patches(const Tensor& path_mean_gradient, int64_t prefix) {
  return class_row(path_mean_gradient.relu().mean(1), prefix);
}

Tensor legrad_patches(const Tensor& gradient, int64_t prefix) {
  return gradient.relu().mean({1, 2}).slice(-1, prefix);
}

}  // namespace aha
