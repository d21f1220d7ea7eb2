#include "aha/nn/trainable_linear.h"

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"
#include "aha/nn/chunks.h"
#include "aha/nn/plain_tensors.h"
#include "aha/nn/row_gemm.h"

namespace aha {
namespace {

// In the backward pass a chunk's own sum of dW costs as much as a few hundred rows: long chunks, and no more
// of them than keep two threads busy. (7 of 224 rows instead of 2 of 784, K = 1024, N = 256: 9.8 instead
// of 7.9 ms for dW.)
constexpr int64_t kChunksBack = 2;

Activations& operand(OperandRole role, const KernelSet& kernels, int64_t capacity, int64_t rows,
                     int64_t columns, const float* from) {
  Activations& kept = kept_operand(role, kernels.format, capacity, columns);
  operand_from_rows(kernels, rows, from, columns, kept);
  return kept;
}

struct TrainableLinearFunction : torch::autograd::Function<TrainableLinearFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, const KernelSet* kernels, const Tensor& x,
                        const Tensor& weight, const c10::optional<Tensor>& bias) {
    context->save_for_backward({x, weight});
    context->saved_data["kernels"] = reinterpret_cast<int64_t>(kernels);
    context->saved_data["bias"] = bias.has_value();
    return linear_by_rows(*kernels, x, weight, bias.value_or(Tensor()));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto& kernels = *reinterpret_cast<const KernelSet*>(context->saved_data["kernels"].toInt());
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const int64_t K = x.size(-1), N = weight.size(0);
    const Tensor in = x.detach().reshape({-1, K}).contiguous();  // (R, K)
    const Tensor dout = grads[0].detach().to(torch::kFloat32).reshape({-1, N}).contiguous();
    const int64_t R = in.size(0), chunk = chunk_rows(R, kChunksBack), chunks = (R + chunk - 1) / chunk;
    const bool wants_x = context->needs_input_grad(0);
    const bool wants_bias = context->saved_data["bias"].toBool() && context->needs_input_grad(2);
    const bool wants_sums = wants_bias || context->needs_input_grad(1);

    Tensor dx;
    PackedWeights packed;
    if (wants_x) {
      dx = torch::empty({R, K});
      packed = PackedWeights::backward(kernels.format, floats(plain_weight(weight, {N, K}, "weight")), N, K);
    }
    const auto back = [&](int64_t c, float* sums) {
      const int64_t first = c * chunk, n = std::min(chunk, R - first);
      const Activations& dy = operand(OperandRole::kGradient, kernels, chunk, n, N, floats(dout) + first * N);
      if (wants_x) gemm(kernels, n, dy, packed, StoreRows{dx.data_ptr<float>() + first * K, K});
      if (!sums) return;
      const Activations& rows = operand(OperandRole::kInput, kernels, chunk, n, K, floats(in) + first * K);
      weight_gradient(kernels, n, {&dy, &rows, sums, K, wants_bias ? sums + N * K : nullptr});
    };

    Tensor dweight, dbias;
    if (wants_sums) {
      const Tensor total = sum_over_chunks(chunks, N * (K + 1), back);
      dweight = total.slice(0, 0, N * K).view({N, K});
      if (wants_bias) dbias = total.slice(0, N * K);
    } else {
      parallel_for(chunks, [&](int64_t c, int) { back(c, nullptr); });
    }
    return {Tensor(), wants_x ? dx.view(x.sizes()) : Tensor(), dweight, dbias};
  }
};

}  // namespace

bool trainable_linear_fits(const Tensor& x, const Tensor& weight) {
  const auto plain = [](const Tensor& t) { return t.is_cpu() && t.scalar_type() == torch::kFloat32; };
  return plain(x) && plain(weight) && weight.dim() == 2 && weight.size(0) % kPanel == 0 &&
         weight.size(1) % kPanel == 0;
}

Tensor trainable_linear(const KernelSet& kernels, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (!trainable_linear_fits(x, weight) || x.dim() < 1 || x.size(-1) != weight.size(1))
    throw input_error(
        "trainable linear: expected (..., K) and (N, K) of float32 on the CPU, K and N in multiples of {}, "
        "found {} of {} and {} of {}",
        kPanel, fmt::join(x.sizes(), " x "), c10::toString(x.scalar_type()), fmt::join(weight.sizes(), " x "),
        c10::toString(weight.scalar_type()));
  if (!torch::GradMode::is_enabled()) return linear_by_rows(kernels, x, weight, bias);
  return TrainableLinearFunction::apply(
      &kernels, x, weight, bias.defined() ? c10::optional<Tensor>(bias) : c10::optional<Tensor>());
}

}  // namespace aha
