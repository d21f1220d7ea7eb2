#include "aha/kernels/sinkhorn/sinkhorn.h"

#include <cmath>
#include <vector>

#include "aha/base/error.h"
#include "aha/kernels/kernel_set.h"
#include "aha/kernels/sinkhorn/gumbel.h"
#include "aha/kernels/sinkhorn/sinkhorn_state.h"

namespace aha {
namespace {

void check(const SinkhornProblem& problem, std::span<float> masks) {
  const size_t K = problem.scores.size();
  if (K < 1 || K > 16384) throw input_error("sinkhorn: expected 1..16384 scores, found {}", K);
  if (!(problem.tau > 0) || !std::isfinite(problem.tau))
    throw input_error("sinkhorn: expected tau > 0, found {}", problem.tau);
  if (problem.iterations < 1)
    throw input_error("sinkhorn: expected at least 1 iteration, found {}", problem.iterations);
  if (!(problem.noise >= 0) || !std::isfinite(problem.noise))
    throw input_error("sinkhorn: expected noise >= 0, found {}", problem.noise);
  for (size_t i = 0; i < K; ++i)
    if (!std::isfinite(problem.scores[i]))
      throw input_error("sinkhorn: score {} is {}, expected finite scores", i, problem.scores[i]);
  int32_t before = 1;
  for (int32_t k : problem.ks) {
    if (k < before || k > static_cast<int64_t>(K))
      throw input_error("sinkhorn: expected ascending k in 1..{}, found {} after {}", K, k, before);
    before = k;
  }
  if (masks.size() != K * problem.ks.size())
    throw input_error("sinkhorn: expected room for {} x {} masks, found {}", problem.ks.size(), K,
                      masks.size());
}

}  // namespace

const SinkhornLoops& sinkhorn_loops() {
  return *kernel_set(best_isa(), Precision::kF32).sinkhorn;
}

SinkhornWorkspace::SinkhornWorkspace() : state_(std::make_unique<State>()) {}
SinkhornWorkspace::~SinkhornWorkspace() = default;
SinkhornWorkspace::SinkhornWorkspace(SinkhornWorkspace&&) noexcept = default;
SinkhornWorkspace& SinkhornWorkspace::operator=(SinkhornWorkspace&&) noexcept = default;
int64_t SinkhornWorkspace::bytes() const {
  return state_->bytes();
}

int64_t SinkhornWorkspace::State::bytes() const {
  int64_t floats = position.size() + u.size() + v.size() + grad.size() + v_grad.size() + work.size() +
                   dense.gumbel.size() + dense.kernel.size() + dense.row_mean.size() + low_rank.rows.size() +
                   low_rank.moments.size() + low_rank.mask_moments.size() + low_rank.back.size();
  if (low_rank.columns) floats += low_rank.columns->size();
  int64_t doubles =
      slope.size() + position64.size() + dense.column.size() + dense.x.size() + low_rank.most.size();
  for (const SinkhornGauge& gauge : dense.gauges) {
    doubles += gauge.log_row.size() + gauge.log_column.size();
    floats += gauge.v_before.size();
  }
  return 4 * floats + 8 * doubles;
}

SinkhornReport sinkhorn_forward(const SinkhornProblem& problem, SinkhornPath path, std::span<float> masks,
                                SinkhornWorkspace& workspace) {
  check(problem, masks);
  SinkhornWorkspace::State& state = workspace.state();
  if (!state.loops) state.loops = &sinkhorn_loops();
  const auto K = static_cast<int32_t>(problem.scores.size());
  const int32_t ld = (K + 15) / 16 * 16;
  state.K = K;
  state.ld = ld;
  state.S = static_cast<int32_t>(problem.ks.size());
  state.iterations = problem.iterations;
  state.tau = problem.tau;
  state.noise = problem.noise;
  state.seed = problem.seed;
  state.stream = problem.stream;
  state.ends.assign(problem.ks.begin(), problem.ks.end());
  state.ends.push_back(K);

  double mean = 0;
  for (float score : problem.scores) mean += score;
  mean /= K;
  state.steepest = state.spread = 0;
  double* slope = state.slope.at_least(K);
  for (int32_t i = 0; i < K; ++i) {
    const double a = problem.scores[i] - mean;
    slope[i] = 2 * a / state.tau;
    state.steepest = std::max(state.steepest, std::abs(a));
    state.spread += a * a / K;
  }
  state.spread = std::sqrt(state.spread);
  double* position64 = state.position64.at_least(ld);
  float* position = state.position.at_least(ld + 16);
  for (int32_t j = 0; j < ld; ++j) position[j] = position64[j] = j < K ? (K - 1 - 2 * j) / (2.0 * K) : 0.0;
  const int64_t history = (int64_t{problem.iterations} + 1) * ld + 16;
  // Padding beyond K has to be zero also where a larger problem was before.
  for (AlignedBuffer<float>* x : {&state.u, &state.v}) {
    x->at_least(history);
    for (int64_t t = 0; t <= problem.iterations; ++t)
      std::fill(x->data() + t * ld + K, x->data() + (t + 1) * ld, 0.0f);
  }
  for (AlignedBuffer<float>* x : {&state.grad, &state.v_grad}) x->at_least(ld + 16);

  SinkhornReport report;
  if (path != SinkhornPath::kDense) {
    state.low_rank.loops = usable_low_rank(state);
    if (state.low_rank.loops && sinkhorn_low_rank_forward(state, masks.data(), report)) {
      state.path = SinkhornPath::kLowRank;
      return report;
    }
    if (path == SinkhornPath::kLowRank)
      throw input_error(
          "sinkhorn: the low-rank path expects no noise, at least 24 scores and a moderate, even spread over "
          "tau; found noise {}, {} scores, max |score - mean| / tau = {:.3g}; available: auto, dense",
          problem.noise, K, state.steepest / state.tau);
  }
  state.path = SinkhornPath::kDense;
  return sinkhorn_dense_forward(state, masks.data());
}

void sinkhorn_backward(std::span<const float> mask_grad, std::span<float> score_grad,
                       SinkhornWorkspace& workspace) {
  SinkhornWorkspace::State& state = workspace.state();
  if (mask_grad.size() != size_t(state.S) * state.K || score_grad.size() != size_t(state.K))
    throw input_error("sinkhorn: expected gradients of {} x {} masks and {} scores, found {} and {}", state.S,
                      state.K, state.K, mask_grad.size(), score_grad.size());
  if (state.path == SinkhornPath::kLowRank)
    sinkhorn_low_rank_backward(state, mask_grad.data());
  else
    sinkhorn_dense_backward(state, mask_grad.data());
  const float* grad = state.grad.data();
  double mean = 0;
  for (int32_t i = 0; i < state.K; ++i) mean += grad[i];
  mean /= state.K;
  for (int32_t i = 0; i < state.K; ++i) score_grad[i] = static_cast<float>(2 / state.tau * (grad[i] - mean));
}

void gumbel_rows(uint64_t seed, uint64_t stream, int64_t K, int64_t first_row, std::span<float> out) {
  std::vector<float> row(gumbel_row_size(static_cast<int32_t>(K)));
  for (size_t at = 0; at < out.size(); at += K, ++first_row) {
    sinkhorn_loops().gumbel_row(seed, stream, static_cast<int32_t>(K), first_row, row.data());
    std::copy(row.begin(), row.begin() + K, out.begin() + at);
  }
}

}  // namespace aha
