// How alike two maps are in their order.
#pragma once

#include "aha/networks/classifier.h"

namespace aha {

// Spearman's rank correlation, in [-1, 1]; equal values share the mean of their ranks. 0 where one of the
// maps is constant: it has no order. Both (H, W), finite.
double spearman(const Tensor& a, const Tensor& b);

}  // namespace aha
