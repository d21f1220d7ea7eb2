// Which attention of a vision transformer is looked at, and who looks.
#pragma once

#include <cstdint>
#include <functional>

#include "aha/tensor/tensor.h"

namespace aha {

struct AttentionVisit {
  // What is differentiated: nothing; the logit of the image's class; or that logit read out right behind the
  // block (final norm and head applied to its class tokens, or to the mean of all its tokens). kDirect: the
  // logit above the mean of all logits, as far as what the attention writes into the class tokens goes to the
  // final norm past everything behind it, that norm's standard deviation held fixed. Attention times this
  // gradient is what a token adds to the logit; it needs no backward pass.
  enum class Gradient { kNone, kLogit, kReadOutClass, kReadOutMean, kDirect };
  Gradient gradient = Gradient::kLogit;
  int first_block = 0;  // blocks below it are not shown: the backward pass ends there
};
// What a token counts for its image's class: the class token's row of (I + C_last) ... (I + C_0), C =
// relu(mean over heads of P * dlogit/dP) (Chefer et al. 2021); or what it adds to the logit by the direct way
// above, summed over blocks and heads.
enum class TokenRelevance { kChefer, kDirect };

// attention (heads, Q, T) behind the softmax, rows = queries; gradient: of the same shape, by the attention,
// undefined where none is wanted. Q may be less than T where the gradient of the other rows is zero. Who
// keeps a tensor has it for good.
using AttentionVisitor =
    std::function<void(int64_t image, int block, const Tensor& attention, const Tensor& gradient)>;

}  // namespace aha
