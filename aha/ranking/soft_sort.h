// Soft order: from region scores to differentiable top-k masks (Gumbel-Sinkhorn; section 3 of the paper).
//
//   L_ij = -(a_i - p_j)^2, p_j = 1, ..., 1/K
//   P = Sinkhorn((L + noise * Gumbel) / tau)
//   mask_i(k) = sum_{j <= k} P_ij
//
// Scores and positions are centered first: the doubly stochastic limit does not depend on the level of the
// scores, and 30 iterations get nearer to it. After the last iteration rows are normalized once more, so that
// every mask lies in [0, 1]. The range of the scores over tau is the sharpness of the masks.
//
// The fused kernel (kernels/sinkhorn/sinkhorn.h) computes in float32, one image a thread, and never holds the
// plan; the gradient is that of the unrolled iteration. soft_top_k_ref does the same with torch operations,
// in the type of its input, and is what the kernel is tested against.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "aha/base/rng.h"
#include "aha/tensor/tensor.h"

namespace aha {

struct SoftSortOptions {
  double tau = 1;       // temperature
  int iterations = 30;  // of row and column normalization
  double noise = 0;     // scale of the Gumbel noise; the paper trains with 1 and refines with 0
  // dense, low-rank (no noise and moderate range / tau only), reference, or auto: the fastest that is exact
  std::string path = "auto";
};

// Which noise: image b of the batch draws from the stream (step, first_image + b) of the context's seed,
// whatever the number of threads.
struct NoiseStream {
  uint64_t step = 0, first_image = 0;
};

struct SoftMasks {
  Tensor masks;     // (B, S, K) in [0, 1], differentiable in the scores
  Tensor residual;  // (B) largest |column sum of P - 1|; rows sum to one
  int iterations = 0;
  std::string
      path;  // what was computed: "dense", "low-rank", "reference", or "dense and low-rank" in one batch
};

// scores (B, K); ks (S) or (B, S) int64, ascending, each in 1..K.
SoftMasks soft_top_k(const Tensor& scores, const Tensor& ks, const SoftSortOptions& options,
                     const NoiseStream& noise, const Context& context);
SoftMasks soft_top_k(const Tensor& scores, std::span<const int64_t> ks, const SoftSortOptions& options,
                     const NoiseStream& noise, const Context& context);

// The plain log-domain version; B * K^2 numbers are kept for every half-step.
SoftMasks soft_top_k_ref(const Tensor& scores, const Tensor& ks, const SoftSortOptions& options,
                         const NoiseStream& noise, const Context& context);

// S values of k spread evenly over 1..K: the middle of each of S strata or, with a generator, a random place
// in it (stratified: an unbiased estimate of the mean over all k, and k = K, which has no gradient, is not
// taken every time). Ascending.
std::vector<int64_t> perturbation_counts(int64_t K, int64_t S, Rng* jitter = nullptr);

}  // namespace aha
