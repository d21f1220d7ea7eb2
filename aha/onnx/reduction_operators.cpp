// Operators that take many numbers to one, and those that compare along an axis.
#include "aha/onnx/operators.h"

namespace aha {
namespace {

Tensor reduced_mean(const Tensor& x, at::IntArrayRef axes, bool keep) {
  return x.is_floating_point() ? x.mean(axes, keep) : x.to(at::kDouble).mean(axes, keep).to(x.scalar_type());
}
Tensor reduced_sum(const Tensor& x, at::IntArrayRef axes, bool keep) {
  return x.sum(axes, keep, x.scalar_type());
}
Tensor reduced_max(const Tensor& x, at::IntArrayRef axes, bool keep) {
  return torch::amax(x, axes, keep);
}
Tensor reduced_min(const Tensor& x, at::IntArrayRef axes, bool keep) {
  return torch::amin(x, axes, keep);
}
Tensor reduced_prod(const Tensor& x, at::IntArrayRef axes, bool keep) {
  std::vector<int64_t> order = axes.vec();
  std::ranges::sort(order, std::greater());
  Tensor out = x;
  for (const int64_t axis : order) out = out.prod(axis, keep, x.scalar_type());
  return out;
}
Tensor reduced_l1(const Tensor& x, at::IntArrayRef axes, bool keep) {
  return reduced_sum(x.abs(), axes, keep);
}
Tensor reduced_squares(const Tensor& x, at::IntArrayRef axes, bool keep) {
  return reduced_sum(x.square(), axes, keep);
}
Tensor reduced_l2(const Tensor& x, at::IntArrayRef axes, bool keep) {
  return reduced_squares(x, axes, keep).sqrt();
}
Tensor reduced_log_sum(const Tensor& x, at::IntArrayRef axes, bool keep) {
  return reduced_sum(x, axes, keep).log();
}
Tensor reduced_log_sum_exp(const Tensor& x, at::IntArrayRef axes, bool keep) {
  return torch::logsumexp(x, axes, keep);
}

template <Tensor (*Reduce)(const Tensor&, at::IntArrayRef, bool)>
OnnxOutputs reduction(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  auto axes = c.ints("axes", 1).value_or(std::vector<int64_t>());
  if (axes.empty() && c.integer("noop_with_empty_axes", 0) != 0) return {x};
  if (axes.empty())
    for (int64_t i = 0; i < x.dim(); ++i) axes.push_back(i);
  for (auto& axis : axes) {
    if (axis < -x.dim() || axis >= x.dim()) c.refuse(fmt::format("axis {} of {} axes", axis, x.dim()));
    if (axis < 0) axis += x.dim();
  }
  if (axes.empty()) return {x};  // a number
  return {Reduce(x, axes, c.integer("keepdims", 1) != 0)};
}

// Before opset 13: over all axes from `axis` on, taken together.
template <Tensor (*Function)(const Tensor&, int64_t)>
OnnxOutputs along_axis(const OnnxCall& c) {
  const Tensor& x = c.in(0);
  const int64_t given = c.integer("axis", c.opset < 13 ? 1 : -1), axis = given < 0 ? given + x.dim() : given;
  if (axis < 0 || axis >= std::max<int64_t>(1, x.dim()))
    c.refuse(fmt::format("axis {} of {} axes", given, x.dim()));
  if (c.opset >= 13 || axis == x.dim() - 1) return {Function(x, axis)};
  return {Function(x.flatten(axis), axis).view_as(x)};
}
Tensor soft_max(const Tensor& x, int64_t axis) {
  return torch::softmax(x, axis);
}
Tensor log_soft_max(const Tensor& x, int64_t axis) {
  return torch::log_softmax(x, axis);
}
Tensor hard_max(const Tensor& x, int64_t axis) {
  return torch::zeros_like(x).scatter_(axis, x.argmax(axis, true), 1);
}

template <bool Largest>
OnnxOutputs arg_extreme(const OnnxCall& c) {
  Tensor x = c.in(0);
  const int64_t axis = c.integer("axis", 0);
  const bool keep = c.integer("keepdims", 1) != 0, last = c.integer("select_last_index", 0) != 0;
  if (last) x = x.flip(axis);
  Tensor found = Largest ? x.argmax(axis, keep) : x.argmin(axis, keep);
  return {last ? x.size(axis) - 1 - found : found};
}

// Of equal numbers the one with the lower index comes first.
OnnxOutputs onnx_top_k(const OnnxCall& c) {
  const auto count = c.opset < 10 ? c.integer("k", 1) : static_cast<int64_t>(c.number(1));
  const int64_t axis = c.integer("axis", -1);
  const auto [values, indices] = c.in(0).sort(/*stable=*/true, axis, c.integer("largest", 1) != 0);
  if (count < 0 || count > values.size(axis))
    c.refuse(fmt::format("expected at most {} numbers, found k = {}", values.size(axis), count));
  return {values.narrow(axis, 0, count), indices.narrow(axis, 0, count)};
}

OnnxOutputs onnx_cum_sum(const OnnxCall& c) {
  const auto axis = static_cast<int64_t>(c.number(1));
  Tensor x = c.in(0);
  const bool reverse = c.integer("reverse", 0) != 0;
  if (reverse) x = x.flip(axis);
  Tensor out = torch::cumsum(x, axis, x.scalar_type());
  if (c.integer("exclusive", 0) != 0) out = out - x;
  return {reverse ? out.flip(axis) : out};
}

constexpr OnnxOperator kReductions[] = {
    {"ArgMax", arg_extreme<true>},
    {"ArgMin", arg_extreme<false>},
    {"CumSum", onnx_cum_sum},
    {"Hardmax", along_axis<hard_max>},
    {"LogSoftmax", along_axis<log_soft_max>},
    {"ReduceL1", reduction<reduced_l1>},
    {"ReduceL2", reduction<reduced_l2>},
    {"ReduceLogSum", reduction<reduced_log_sum>},
    {"ReduceLogSumExp", reduction<reduced_log_sum_exp>},
    {"ReduceMax", reduction<reduced_max>},
    {"ReduceMean", reduction<reduced_mean>},
    {"ReduceMin", reduction<reduced_min>},
    {"ReduceProd", reduction<reduced_prod>},
    {"ReduceSum", reduction<reduced_sum>},
    {"ReduceSumSquare", reduction<reduced_squares>},
    {"Softmax", along_axis<soft_max>},
    {"TopK", onnx_top_k},
};

}  // namespace

std::span<const OnnxOperator> reduction_operators() {
  return kReductions;
}

}  // namespace aha
