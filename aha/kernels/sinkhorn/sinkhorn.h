// Soft top-k masks of one image by Gumbel-Sinkhorn, forward and exact gradient, without ever storing the
// plan.
//
// K scores a_i meet K positions p_j = (K - j) / K, j = 0..K-1 (1, ..., 1/K), both centered on their means:
//
//   L_ij = (-(a_i - p_j)^2 + noise * Gumbel_ij) / tau
//   P    = exp(L), `iterations` times { rows to sum one, columns to sum one }, then once more rows to sum one
//   mask_si = sum over the first k_s positions of P_ij
//
// The closing normalization over positions keeps every mask in [0, 1] and makes the mask of k = K one; how
// far the columns are from one then is reported as `residual`. Centering changes nothing in the limit and
// brings 30 iterations nearer to it.
//
// All that is kept is exp(L) in a gauge (row and column factors taken out, so that float32 suffices for any
// tau and any range of scores) or its factors of low rank, and the scaling vectors of every iteration: with u
// = 1 / (K v), v = 1 / (K' u) the masks and the derivative of the unrolled iteration follow from
// matrix-vector products. One dense iteration is one sweep over K x K floats.
//
//   dense     any noise, any sharpness; 4 K^2 bytes. exp(L) is rebuilt in a new gauge when a scaling leaves
//             [1e-12, 1e12].
//
//   low rank  no noise, moderate sharpness (at tau = 1 scores spread over up to about 50): exp(L) is smooth
//             in p and is interpolated at 12..48 Chebyshev nodes.
//
// One image is one thread's work. Noise is a pure function of (seed, stream), so no thread count changes a
// result.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace aha {

enum class SinkhornPath {
  kAuto,  // low rank where it is exact enough and faster, else dense
  kDense,
  kLowRank,  // an input error where it does not apply
};

struct SinkhornProblem {
  std::span<const float> scores;  // (K), finite
  std::span<const int32_t> ks;    // (S), ascending, each in 1..K
  double tau = 1;                 // > 0
  int iterations = 30;            // >= 1
  double noise = 0;               // scale of the Gumbel noise; the paper trains with 1
  uint64_t seed = 0, stream = 0;  // of the noise
};

struct SinkhornReport {
  SinkhornPath path = SinkhornPath::kDense;
  int rank = 0;         // of the low-rank path
  int regauges = 0;     // how often exp(L) was rebuilt
  double residual = 0;  // largest |column sum - 1|; rows sum to one up to rounding
};

// What forward leaves for backward. Reuse it from call to call: its memory grows to the largest problem and
// stays.
class SinkhornWorkspace {
 public:
  SinkhornWorkspace();
  ~SinkhornWorkspace();
  SinkhornWorkspace(SinkhornWorkspace&&) noexcept;
  SinkhornWorkspace& operator=(SinkhornWorkspace&&) noexcept;
  int64_t bytes() const;

  struct State;  // sinkhorn_state.h
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Fills masks (S, K).
SinkhornReport sinkhorn_forward(const SinkhornProblem& problem, SinkhornPath path, std::span<float> masks,
                                SinkhornWorkspace& workspace);

// mask_grad (S, K) -> score_grad (K), after a forward with this workspace; any number of times.
void sinkhorn_backward(std::span<const float> mask_grad, std::span<float> score_grad,
                       SinkhornWorkspace& workspace);

}  // namespace aha
