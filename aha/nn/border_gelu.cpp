#include "aha/nn/border_gelu.h"

#include <cstring>

#include "aha/kernels/elementwise/elementwise.h"
#include "aha/kernels/kernel_set.h"
#include "aha/nn/worth_threads.h"

namespace aha {
namespace {

constexpr double kOfACopy = 16, kOfAGelu = 64;  // operations an element, by their time

bool on_kernels(const Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat32;
}

// (B, H, W, C), contiguous.
Tensor channels_last_rows(const Tensor& x) {
  return x.detach().permute({0, 2, 3, 1}).contiguous();
}

int64_t inner(int64_t place, int64_t size) {
  return std::clamp<int64_t>(place - 1, 0, size - 1);
}

struct BorderFunction : torch::autograd::Function<BorderFunction> {
  static Tensor run(const Tensor& x) {
    const Tensor in = channels_last_rows(x);
    const int64_t B = in.size(0), H = in.size(1), W = in.size(2), C = in.size(3);
    Tensor out = torch::empty({B, H + 2, W + 2, C});
    const float* from = in.data_ptr<float>();
    float* to = out.data_ptr<float>();
    parallel_if_worth(B, kOfACopy * static_cast<double>(in.numel()), [&](int64_t b, int) {
      for (int64_t y = 0; y < H + 2; ++y) {
        const float* line = from + (b * H + inner(y, H)) * W * C;
        float* wide = to + (b * (H + 2) + y) * (W + 2) * C;
        std::memcpy(wide, line, sizeof(float) * C);
        std::memcpy(wide + C, line, sizeof(float) * W * C);
        std::memcpy(wide + (W + 1) * C, line + (W - 1) * C, sizeof(float) * C);
      }
    });
    return out.permute({0, 3, 1, 2});
  }

  static Tensor forward(torch::autograd::AutogradContext*, const Tensor& x) { return run(x); }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list grads) {
    const Tensor dout = channels_last_rows(grads[0]);
    const int64_t B = dout.size(0), H = dout.size(1) - 2, W = dout.size(2) - 2, C = dout.size(3);
    Tensor dx = torch::zeros({B, H, W, C});
    const float* from = dout.data_ptr<float>();
    float* to = dx.data_ptr<float>();
    const auto add = [](float* sum, const float* more, int64_t n) {
      for (int64_t i = 0; i < n; ++i) sum[i] += more[i];
    };
    parallel_if_worth(B, kOfACopy * static_cast<double>(dx.numel()), [&](int64_t b, int) {
      for (int64_t y = 0; y < H + 2; ++y) {
        const float* wide = from + (b * (H + 2) + y) * (W + 2) * C;
        float* line = to + (b * H + inner(y, H)) * W * C;
        add(line, wide + C, W * C);
        add(line, wide, C);
        add(line + (W - 1) * C, wide + (W + 1) * C, C);
      }
    });
    return {dx.permute({0, 3, 1, 2})};
  }
};

struct GeluFunction : torch::autograd::Function<GeluFunction> {
  static Tensor run(const Tensor& x, Tensor* slope) {
    constexpr int64_t kPiece = 1 << 14;
    const Tensor in = x.is_non_overlapping_and_dense() ? x.detach() : x.detach().contiguous();
    Tensor out = torch::empty_like(in);
    if (slope) *slope = torch::empty_like(in);
    const KernelSet& kernels = best_kernel_set(Precision::kF32);
    const float* from = in.data_ptr<float>();
    float *to = out.data_ptr<float>(), *derivative = slope ? slope->data_ptr<float>() : nullptr;
    const int64_t n = in.numel();
    parallel_if_worth((n + kPiece - 1) / kPiece, kOfAGelu * static_cast<double>(n), [&](int64_t i, int) {
      const int64_t first = i * kPiece;
      gelu(kernels, std::min(kPiece, n - first), from + first, to + first,
           derivative ? derivative + first : nullptr);
    });
    return out;
  }

  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x) {
    Tensor slope;
    Tensor out = run(x, &slope);
    context->save_for_backward({slope});
    return out;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    return {grads[0] * context->get_saved_variables()[0]};
  }
};

}  // namespace

Tensor with_border(const Tensor& x) {
  check_shape(x, {-1, -1, -1, -1}, "feature map");
  if (!on_kernels(x)) return at::replication_pad2d(x, {1, 1, 1, 1});
  return torch::GradMode::is_enabled() ? BorderFunction::apply(x) : BorderFunction::run(x);
}

Tensor gelu_of(const Tensor& x) {
  if (!on_kernels(x)) return torch::gelu(x);
  return torch::GradMode::is_enabled() ? GeluFunction::apply(x) : GeluFunction::run(x, nullptr);
}

}  // namespace aha
