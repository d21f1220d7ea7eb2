#include <algorithm>
#include <cmath>

#include "aha/kernels/sinkhorn/sinkhorn_state.h"

namespace aha {
namespace {

using State = SinkhornWorkspace::State;

SinkhornLogits logits_of(State& state) {
  State::Dense& dense = state.dense;
  SinkhornLogits logits;
  logits.K = state.K;
  logits.ld = state.ld;
  logits.slope = state.slope.data();
  logits.position = state.position64.data();
  logits.position32 = state.position.data();
  logits.column = dense.column.data();
  logits.noise = state.noise / state.tau;
  logits.seed = state.seed;
  logits.stream = state.stream;
  logits.x = dense.x.data();
  logits.gumbel = dense.gumbel.data();
  return logits;
}

void build_gauge(State& state, size_t gauge) {
  if (state.dense.built == gauge) return;
  const SinkhornGauge& g = state.dense.gauges[gauge];
  state.loops->build(logits_of(state), g.log_row.data(), g.log_column.data(), state.dense.kernel.data());
  state.dense.built = gauge;
}

void set_ones(State& state, float* x) {
  std::fill(x, x + state.K, 1.0f);
}

// The first row and column normalization. A row softmax never underflows; a column that no region prefers
// may, and is then done in logarithms.
void start(State& state) {
  State::Dense& dense = state.dense;
  const SinkhornLogits logits = logits_of(state);
  SinkhornGauge gauge;
  gauge.log_row.resize(state.K);
  gauge.log_column.assign(state.ld, 0.0);
  float* v = state.v_at(1);
  state.loops->row_softmax(logits, dense.kernel.data(), gauge.log_row.data(), dense.row_mean.data(), v);
  if (*std::min_element(v, v + state.K) > 1e-12f) {
    for (int32_t j = 0; j < state.K; ++j) v[j] = 1 / v[j];
  } else {
    std::vector<double> most(state.ld);
    state.loops->column_log_sums(logits, gauge.log_row.data(), most.data(), gauge.log_column.data());
    state.loops->build(logits, gauge.log_row.data(), gauge.log_column.data(), dense.kernel.data());
    set_ones(state, v);
  }
  dense.gauges.clear();
  dense.gauges.push_back(std::move(gauge));
  dense.built = 0;
}

// Takes the scalings of iteration t into the kernel. A half-step changes a scaling by a factor between 1/K
// and K (its sums lie between those after the half-step before), so no check between iterations comes too
// late for float32.
void regauge(State& state, int t) {
  SinkhornGauge next = state.dense.gauges.back();
  float *u = state.u_at(t), *v = state.v_at(t + 1);
  next.first = t + 1;
  next.v_before.assign(v, v + state.ld);
  for (int32_t i = 0; i < state.K; ++i) {
    next.log_row[i] -= std::log(static_cast<double>(u[i]));
    next.log_column[i] -= std::log(static_cast<double>(v[i]));
  }
  set_ones(state, v);
  state.dense.gauges.push_back(std::move(next));
  build_gauge(state, state.dense.gauges.size() - 1);
}

}  // namespace

SinkhornReport sinkhorn_dense_forward(State& state, float* masks) {
  State::Dense& dense = state.dense;
  const int32_t K = state.K, ld = state.ld;
  double* column = dense.column.at_least(ld);
  for (int32_t j = 0; j < ld; ++j)
    column[j] = j < K ? -state.position64[j] * state.position64[j] / state.tau : -1e300;
  dense.x.at_least(ld);
  dense.gumbel.at_least(std::max(ld, gumbel_row_size(K)));
  dense.row_mean.at_least(ld);
  dense.kernel.at_least(static_cast<int64_t>(K) * ld + 16);

  start(state);
  const float* kernel = dense.kernel.data();
  for (int t = 1; t < state.iterations; ++t)
    if (!state.loops->sweep(kernel, K, ld, state.v_at(t), state.u_at(t), state.v_at(t + 1)))
      regauge(state, t);

  float* column_sum = state.work.at_least(ld);
  const int last = state.iterations;
  state.loops->masks(kernel, K, ld, state.v_at(last), state.ends.data(), state.S + 1, state.u_at(last), masks,
                     column_sum);
  SinkhornReport report;
  report.path = SinkhornPath::kDense;
  report.regauges = static_cast<int>(dense.gauges.size()) - 1;
  for (int32_t j = 0; j < K; ++j) report.residual = std::max(report.residual, std::abs(column_sum[j] - 1.0));
  return report;
}

// In reverse, with P = diag(u) K diag(v) and x_grad for the derivative by x; p_j dlog(K_ij) is summed over j
// as each term appears:
//   masks          dlog(K_ij) = P_ij (P_grad_ij - mean_i),  v_grad_j = sum_i u_i K_ij (P_grad_ij - mean_i)
//   v = 1 / (K'u)  c_grad = -v_grad v^2,   dlog(K_ij) = u_i K_ij c_grad_j,   u_grad = K c_grad
//   u = 1 / (K v)  r_grad = -u_grad u^2,   dlog(K_ij) = r_grad_i K_ij v_j,   v_grad = K' r_grad
void sinkhorn_dense_backward(State& state, const float* mask_grad) {
  State::Dense& dense = state.dense;
  const int32_t K = state.K, ld = state.ld;
  const float *kernel = dense.kernel.data(), *position = state.position.data();
  float *grad = state.grad.data(), *v_grad = state.v_grad.data();
  float* v_scale = state.work.at_least(5 * int64_t{ld} + 3 * state.ends.size() + 32);
  float* scratch = v_scale + ld;

  size_t gauge = dense.gauges.size() - 1;
  build_gauge(state, gauge);
  const int last = state.iterations;
  state.loops->masks_backward(kernel, K, ld, state.v_at(last), position, state.ends.data(), state.S + 1,
                              state.u_at(last), mask_grad, scratch, grad, v_grad);
  for (int t = last - 1; t >= 0; --t) {
    const float* v_next = state.v_at(t + 1);
    const bool crossing = gauge > 0 && dense.gauges[gauge].first == t + 1;
    const float* v_before = crossing ? dense.gauges[gauge].v_before.data() : v_next;
    for (int32_t j = 0; j < ld; ++j) v_scale[j] = v_next[j] * v_before[j];
    if (crossing) build_gauge(state, --gauge);
    if (t > 0)
      state.loops->sweep_backward(kernel, K, ld, v_scale, state.u_at(t), state.v_at(t), position, scratch,
                                  grad, v_grad);
    else
      state.loops->first_backward(kernel, K, ld, v_scale, position, dense.row_mean.data(), v_grad, grad);
  }
}

}  // namespace aha
