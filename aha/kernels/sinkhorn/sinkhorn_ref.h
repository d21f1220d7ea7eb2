// The obvious Sinkhorn of sinkhorn.h: log domain, double precision, one half-step after the other. For tests.
#pragma once

#include <vector>

#include "aha/kernels/sinkhorn/sinkhorn.h"

namespace aha {

struct SinkhornReference {
  std::vector<double> plan;        // (K, K) regions x positions
  std::vector<double> masks;       // (S, K)
  std::vector<double> score_grad;  // (K), empty without mask_grad
};

SinkhornReference sinkhorn_ref(const SinkhornProblem& problem, std::span<const float> mask_grad = {});

}  // namespace aha
