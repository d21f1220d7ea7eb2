#include "aha/api/callable_target.h"

#include "aha/tensor/torch.h"

#include <atomic>
#include <mutex>
#include <thread>

#include "aha/base/error.h"
#include "aha/tensor/tensor.h"

namespace aha {
namespace {

struct SharedCallable {
  Callable functions;
  std::mutex one_at_a_time = {};
  std::atomic<std::thread::id> inside = {};

  // Of the thread that calls the functions.
  class Turn {
   public:
    explicit Turn(SharedCallable& callable) : callable_(callable) {
      if (callable.inside == std::this_thread::get_id())
        throw input_error("{}: expected a function that does not ask for its own model, found one that does",
                          callable.functions.name);
      callable.one_at_a_time.lock();
      callable.inside = std::this_thread::get_id();
    }
    ~Turn() {
      callable_.inside = std::thread::id();
      callable_.one_at_a_time.unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    SharedCallable& callable_;
  };

  Tensor forward(const Tensor& pixels) {
    const Tensor x = pixels.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    Tensor logits = torch::empty({x.size(0), functions.classes});
    const Turn turn(*this);
    functions.forward(x.data_ptr<float>(), x.size(0), logits.data_ptr<float>());
    return logits;
  }
  Tensor gradient(const Tensor& pixels, const Tensor& weights) {
    const Tensor x = pixels.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    const Tensor w = weights.detach().to(torch::kCPU, torch::kFloat32).contiguous();
    Tensor out = torch::empty_like(x);
    const Turn turn(*this);
    functions.gradient(x.data_ptr<float>(), w.data_ptr<float>(), x.size(0), out.data_ptr<float>());
    return out;
  }
};

struct CallableFunction : torch::autograd::Function<CallableFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& pixels, int64_t address) {
    context->save_for_backward({pixels});
    context->saved_data["callable"] = address;
    return reinterpret_cast<SharedCallable*>(address)->forward(pixels);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list weights) {
    auto* callable = reinterpret_cast<SharedCallable*>(context->saved_data["callable"].toInt());
    const Tensor pixels = context->get_saved_variables()[0];
    return {callable->gradient(pixels, weights[0]).to(pixels.device()), Tensor()};
  }
};

class CallableTarget : public Classifier {
 public:
  explicit CallableTarget(Callable functions) : shared_{std::move(functions)} {
    info_.name = info_.architecture = shared_.functions.name;
    info_.classes = static_cast<int>(shared_.functions.classes);
    info_.input.size = info_.input.resize = static_cast<int>(shared_.functions.size);
    info_.input.mean = {0, 0, 0};
    info_.input.std = {1, 1, 1};
    info_.sha256 = "";
  }

  Tensor logits(const Tensor& pixels, Taps*) override {
    check_shape(pixels, {-1, 3, shared_.functions.size, shared_.functions.size}, "pixels");
    if (!pixels.requires_grad() || !at::GradMode::is_enabled()) return shared_.forward(pixels);
    if (!shared_.functions.gradient)
      throw input_error(
          "{}: this method needs gradients, and the callable came without a function for them; methods that "
          "need none: rise, occlusion, center, random",
          info_.name);
    return CallableFunction::apply(pixels, reinterpret_cast<int64_t>(&shared_));
  }

 private:
  SharedCallable shared_;
};

}  // namespace

std::unique_ptr<Classifier> classifier_from_callable(Callable callable) {
  if (!callable.forward) throw input_error("{}: expected a function for logits, found none", callable.name);
  if (callable.classes < 2 || callable.size < 1 || callable.classes > 1 << 24 || callable.size > 4096)
    throw input_error("{}: expected 2 classes or more and an input of 1..4096 pixels, found {} and {}",
                      callable.name, callable.classes, callable.size);
  return std::make_unique<CallableTarget>(std::move(callable));
}

}  // namespace aha
