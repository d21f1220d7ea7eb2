// The two feed-forward forms of the transformers here.
//
//   GELU:    fc2(gelu(fc1(x))), the exact erf form: the tanh form differs by up to 4e-4 an activation.
//   SwiGLU:  w3(silu(w1(x)) * w2(x))
#pragma once

#include "aha/nn/linear.h"

namespace aha {

struct MlpOptions {
  int64_t width, hidden;
  bool swiglu = false;
};

struct MlpImpl : torch::nn::Cloneable<MlpImpl> {
  explicit MlpImpl(MlpOptions options) : options(options) { reset(); }
  void reset() override;
  Tensor forward(const Tensor& x);  // (..., D) -> (..., D)

  MlpOptions options;
  Linear fc1{nullptr}, fc2{nullptr};             // GELU
  Linear w1{nullptr}, w2{nullptr}, w3{nullptr};  // SwiGLU
};
TORCH_MODULE(Mlp);

}  // namespace aha
