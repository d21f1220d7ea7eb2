#include "aha/nn/attention.h"

#include <cmath>
#include <numbers>

namespace aha {

void LinearImpl::reset() {
  weight = register_parameter("weight", torch::zeros({options.out, options.in}));
  bias = register_parameter("bias", torch::zeros({options.out}));
}

Tensor LinearImpl::forward(const Tensor& x) {
  return at::linear(x, weight, bias);
}

Tensor rope_periods(int64_t head_width, double base) {
  const auto q = head_width / 4;
  return torch::pow(base, torch::arange(q, at::kFloat) / static_cast<double>(q));
}

RopeTable rope_table(const Tensor& periods, int64_t h, int64_t w) {
  const auto options = periods.options();
  const auto center = [&](int64_t n) {
    return (torch::arange(n, options) + 0.5) / static_cast<double>(n) * 2 - 1;
  };
  const auto grid = torch::meshgrid({center(h), center(w)}, "ij");
  const auto place = torch::stack({grid[0].flatten(), grid[1].flatten()}, 1);  // (N, 2)
  auto angles =
      (2 * std::numbers::pi * place.unsqueeze(2) / periods.view({1, 1, -1})).flatten(1);  // (N, d/2)
  angles = torch::cat({angles, angles}, 1);                                               // (N, d)
  return {angles.cos(), angles.sin()};
}

Tensor rotated(const Tensor& x, const RopeTable& table) {
  const auto prefix = x.size(2) - table.cos.size(0);
  const auto patches = x.slice(2, prefix);  // (B, heads, N, d)
  const auto halves = patches.chunk(2, -1);
  const auto turned = patches * table.cos + torch::cat({-halves[1], halves[0]}, -1) * table.sin;
  return prefix == 0 ? turned : torch::cat({x.slice(2, 0, prefix), turned}, 2);
}

void AttentionImpl::reset() {
  qkv = register_module("qkv", Linear(LinearOptions{options.width, 3 * options.width}));
  proj = register_module("proj", Linear(LinearOptions{options.width, options.width}));
}

std::vector<Tensor> AttentionImpl::heads_of(const Tensor& x, const RopeTable* rope) {
  const auto B = x.size(0), T = x.size(1), d = options.width / options.heads;
  auto thirds = qkv(x).view({B, T, 3, options.heads, d}).permute({2, 0, 3, 1, 4}).unbind(0);
  if (rope)
    for (int i : {0, 1}) thirds[i] = rotated(thirds[i], *rope);
  return thirds;
}

Tensor AttentionImpl::forward(const Tensor& x, const RopeTable* rope, Taps* taps, const std::string& name) {
  const auto joined = [&](const Tensor& heads) { return heads.transpose(1, 2).reshape(x.sizes()); };
  const auto thirds = heads_of(x, rope);
  const auto &q = thirds[0], &k = thirds[1], &v = thirds[2];
  if (taps && taps->wants(name + ".value_out"))
    taps->offer(name + ".value_out", at::linear(joined(v), proj->weight));
  // Scaling Q instead of the scores saves T*T multiplications a head.
  const auto attention =
      torch::softmax(torch::matmul(q / std::sqrt(static_cast<double>(q.size(3))), k.transpose(-2, -1)), -1);
  if (taps) taps->offer(name + ".attention", attention);  // (B, heads, T, T)
  auto out = proj(joined(torch::matmul(attention, v)));
  if (taps) taps->offer(name + ".attention_out", out);
  return out;
}

}  // namespace aha
