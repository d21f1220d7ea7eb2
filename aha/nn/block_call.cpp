#include "aha/nn/block_call.h"

namespace aha {
namespace {

struct BlockFunction : torch::autograd::Function<BlockFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, at::TensorList weights,
                        const c10::intrusive_ptr<BlockCall>& call) {
    auto saved = weights.vec();
    if (call->needs_input()) saved.push_back(x);
    context->save_for_backward(std::move(saved));
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return call->forward(x, weights, true);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto holder = context->saved_data["call"].toCapsule();
    auto& call = static_cast<BlockCall&>(*holder);
    auto saved = context->get_saved_variables();
    Tensor x;
    if (call.needs_input()) {
      x = saved.back();
      saved.pop_back();
    }
    auto out = call.backward(grads[0].detach().to(torch::kFloat32), x, saved);
    out.emplace_back();  // the call
    return out;
  }
};

}  // namespace

Tensor run_block(const c10::intrusive_ptr<BlockCall>& call, const Tensor& x,
                 const std::vector<Tensor>& weights) {
  if (!torch::GradMode::is_enabled()) return call->forward(x, weights, false);
  return BlockFunction::apply(x, at::TensorList(weights), call);
}

}  // namespace aha
