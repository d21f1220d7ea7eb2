// Which attention of a vision transformer is looked at, and who looks.
#pragma once

#include <cstdint>
#include <functional>

#include "aha/tensor/tensor.h"

namespace aha {

struct AttentionVisit {
  // What is differentiated: nothing; the logit of the image's class; or that logit read out right behind the
  // block (final norm and head applied to its class tokens, or to the mean of all its tokens).
  enum class Gradient { kNone, kLogit, kReadOutClass, kReadOutMean };
  Gradient gradient = Gradient::kLogit;
  int first_block = 0;  // blocks below it are not shown: the backward pass ends there
};
// attention (heads, Q, T) behind the softmax, rows = queries; gradient: of the same shape, by the attention,
// undefined where none is wanted. Q may be less than T where the gradient of the other rows is zero. Who
// keeps a tensor has it for good.
using AttentionVisitor =
    std::function<void(int64_t image, int block, const Tensor& attention, const Tensor& gradient)>;

}  // namespace aha
