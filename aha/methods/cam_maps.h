// The CAM family as plain tensor functions: features a (B, C, h, w), their gradients q = d y_t / d a, raw
// maps (B, h, w) out; cam_finished() ends them.
#pragma once

#include "aha/tensor/tensor.h"

namespace aha {

// Grad-CAM (Selvaraju et al. 2017): sum_c mean_ij(q_c) a_c.
inline Tensor gradcam_raw(const Tensor& features, const Tensor& gradients) {
  return (features * gradients.mean({2, 3}, true)).sum(1);
}

}  // namespace aha
