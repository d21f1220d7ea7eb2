#include "aha/objective/terms.h"

#include "aha/tensor/torch.h"

#include "aha/base/error.h"

namespace aha {

Tensor deletion_term(const Tensor& probs) {
  return probs.mean();
}

Tensor insertion_term(const Tensor& probs) {
  return probs.mean();
}

Tensor smoothness_term(const Tensor& maps, int window) {
  check_shape(maps, {-1, -1, -1}, "maps");
  if (window < 1 || window % 2 == 0)
    throw input_error("averaging filter: expected an odd side, found {}", window);
  const int64_t edge = window / 2;
  const Tensor padded =
      torch::replication_pad2d(maps, {edge, edge, edge, edge});  // (B, H + 2 edge, W + 2 edge)
  const Tensor average =
      torch::avg_pool2d(padded.unsqueeze(1), {window, window}, {1, 1}).squeeze(1);  // (B, H, W)
  return (maps - average).square().mean();
}

}  // namespace aha
