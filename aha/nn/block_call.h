// A block that is being trained, as one node of libtorch's autograd: the part that every such block shares.
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "aha/tensor/tensor.h"

namespace aha {

// One call. Its backward pass may come several times.
struct BlockCall : torch::CustomClassHolder {
  virtual Tensor forward(const Tensor& x, at::TensorList weights, bool save) = 0;
  // Of x and of every weight. x is undefined unless needs_input().
  virtual std::vector<Tensor> backward(const Tensor& dout, const Tensor& x, at::TensorList weights) = 0;
  virtual bool needs_input() const { return false; }
};

// Keeps the call until the gradient has passed, where one may be asked for.
Tensor run_block(const c10::intrusive_ptr<BlockCall>& call, const Tensor& x,
                 const std::vector<Tensor>& weights);

}  // namespace aha
