// Without noise a row of exp(L), up to its own factor, is the function exp((2 a_i p - c p^2) / tau) of the
// position p, and any c will do: the rest of p^2 goes to v. With c = the slope of the sorted scores over the
// positions these are Gaussians around where the region ends up, so interpolating them at Chebyshev nodes x_n
// loses nothing that matters:
//
//   exp(L)_ij ~ sum_n rows_n(i) columns_n(j),  rows_n(i) = exp((2 a_i x_n - c x_n^2) / tau - most_i),
//   columns_n(j) = Lagrange_n(p_j)
//
// The derivative of rows_n(i) by a_i is 2 x_n / tau rows_n(i): the gradient below is exact for the
// interpolated plan, and every product with a matrix costs rank * K. `columns` depends on (K, rank) only and
// is kept.
#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>

#include "aha/kernels/sinkhorn/sinkhorn_state.h"

namespace aha {
namespace {

using State = SinkhornWorkspace::State;

double half_width(int32_t K) {
  return (K - 1) / (2.0 * K);
}

std::vector<double> chebyshev_nodes(int32_t K, int rank) {
  std::vector<double> nodes(rank);
  for (int n = 0; n < rank; ++n)
    nodes[n] = half_width(K) * std::cos((2 * n + 1) * std::numbers::pi / (2 * rank));
  return nodes;
}

AlignedBuffer<float> lagrange_columns(int32_t K, int32_t ld, int rank, const double* position) {
  const std::vector<double> nodes = chebyshev_nodes(K, rank);
  AlignedBuffer<float> columns(int64_t{rank} * ld + 16);
  std::vector<double> weighted(rank);
  for (int32_t j = 0; j < K; ++j) {
    double total = 0;
    int exact = -1;
    for (int n = 0; n < rank; ++n) {  // the barycentric formula
      const double distance = position[j] - nodes[n];
      if (std::abs(distance) < 1e-14) exact = n;
      weighted[n] = (n % 2 ? -1 : 1) * std::sin((2 * n + 1) * std::numbers::pi / (2 * rank)) / distance;
      total += weighted[n];
    }
    for (int n = 0; n < rank; ++n)
      columns[int64_t{n} * ld + j] = static_cast<float>(exact >= 0 ? n == exact : weighted[n] / total);
  }
  return columns;
}

// At most a few dozen grids and six ranks in a run, 150 KB at most each.
std::shared_ptr<const AlignedBuffer<float>> kept_columns(const State& state, int rank) {
  static std::mutex guard;
  static std::map<std::pair<int32_t, int>, std::shared_ptr<const AlignedBuffer<float>>> kept;
  const std::lock_guard lock(guard);
  auto& columns = kept[{state.K, rank}];
  if (!columns)
    columns = std::make_shared<const AlignedBuffer<float>>(
        lagrange_columns(state.K, state.ld, rank, state.position64.data()));
  return columns;
}

// The slope c of the sorted scores, as that of evenly spread scores of the same spread.
double curvature(const State& state) {
  return std::min(std::sqrt(12.0) * state.spread, state.steepest / half_width(state.K));
}

}  // namespace

const LowRankLoops* usable_low_rank(const State& state) {
  if (state.noise > 0 || state.K < 16) return nullptr;
  const double half = half_width(state.K), steepness = state.steepest * 2 * half / state.tau;
  // The first column factors are exp((c - 1) p^2 / tau). Beyond exp(12) the rounding errors they amplify are
  // not forgotten in 30 iterations: at exp(25) masks are wrong by 2e-4.
  if (!(std::abs(curvature(state) - 1) * half * half / state.tau < 12)) return nullptr;
  for (int32_t n = 0; n < state.loops->low_rank_count; ++n) {
    const LowRankLoops& loops = state.loops->low_rank[n];
    if (steepness <= loops.steepest) return 2 * loops.rank <= state.K ? &loops : nullptr;
  }
  return nullptr;
}

bool sinkhorn_low_rank_forward(State& state, float* masks, SinkhornReport& report) {
  State::LowRank& low = state.low_rank;
  const LowRankLoops& loops = *low.loops;
  const int32_t K = state.K, ld = state.ld, rank = loops.rank;
  const double c = curvature(state), half = half_width(K);

  low.nodes64 = chebyshev_nodes(K, rank);
  low.nodes.assign(low.nodes64.begin(), low.nodes64.end());
  low.column.resize(rank);
  for (int n = 0; n < rank; ++n) low.column[n] = -c * low.nodes64[n] * low.nodes64[n] / state.tau;
  low.most.resize(K);
  for (int32_t i = 0; i < K; ++i) {
    const double a = state.slope[i] * state.tau / 2,
                 top = c > 0 ? std::clamp(a / c, -half, half) : std::copysign(half, a);
    low.most[i] = (2 * a * top - c * top * top) / state.tau;
  }
  low.columns = kept_columns(state, rank);
  float* rows = low.rows.at_least(int64_t{rank} * ld + 16);
  const float* columns = low.columns->data();
  state.loops->low_rank_rows(state.slope.data(), low.most.data(), K, ld, low.nodes64.data(),
                             low.column.data(), rank, rows);

  float* m = low.moments.at_least(int64_t{state.iterations + 1} * rank);
  float* h = low.back.at_least(int64_t{state.S + 2} * rank);
  float* v = state.v_at(0);
  for (int32_t j = 0; j < K; ++j)
    v[j] = static_cast<float>(std::exp((c - 1) * state.position64[j] * state.position64[j] / state.tau));
  loops.moments(columns, ld, 0, K, v, m);
  for (int t = 0; t < state.iterations; ++t, m += rank) {
    loops.half_step(rows, K, ld, m, state.u_at(t), h);
    loops.half_step(columns, K, ld, h, state.v_at(t + 1), m + rank);
  }
  const int last = state.iterations;
  const float* u = state.u_at(last);
  v = state.v_at(last);
  loops.half_step(rows, K, ld, m, state.u_at(last), h);

  // An error of 3e-8 in a row of exp(L) is one of 3e-8 u_i sum(v) in its masks; and whatever went wrong on
  // the way ends here.
  double most_u = 0, sum_v = 0;
  for (int32_t i = 0; i < K; ++i) {
    if (!(u[i] > 0 && v[i] > 0)) return false;
    most_u = std::max(most_u, double(u[i]));
    sum_v += v[i];
  }
  if (!(most_u * sum_v < 64)) return false;

  float* work = state.work.at_least(ld + 16);
  loops.combine(columns, ld, 0, K, h, work);
  report.path = SinkhornPath::kLowRank;
  report.rank = rank;
  for (int32_t j = 0; j < K; ++j)
    report.residual = std::max(report.residual, std::abs(double(work[j]) * v[j] - 1));

  float* q = low.mask_moments.at_least(int64_t{state.S} * rank);
  for (int32_t s = 0; s < state.S; ++s) {
    float* here = q + int64_t{s} * rank;
    loops.moments(columns, ld, s ? state.ends[s - 1] : 0, state.ends[s], v, here);
    if (s > 0)
      for (int n = 0; n < rank; ++n) here[n] += here[n - rank];
    loops.combine(rows, ld, 0, K, here, work);
    for (int32_t i = 0; i < K; ++i) masks[int64_t{s} * K + i] = std::clamp(u[i] * work[i], 0.0f, 1.0f);
  }
  return true;
}

void sinkhorn_low_rank_backward(State& state, const float* mask_grad) {
  State::LowRank& low = state.low_rank;
  const LowRankLoops& loops = *low.loops;
  const int32_t K = state.K, ld = state.ld, S = state.S, rank = loops.rank;
  const float *rows = low.rows.data(), *columns = low.columns->data(), *nodes = low.nodes.data();
  const int last = state.iterations;
  const float* u = state.u_at(last);
  const float* v = state.v_at(last);
  float *grad = state.grad.data(), *v_grad = state.v_grad.data();

  float* coefficient = state.work.at_least(3 * int64_t{ld});
  float *value = coefficient + ld, *unused = coefficient + 2 * ld;
  std::fill(coefficient, coefficient + 3 * ld, 0.0f);
  std::fill(grad, grad + ld, 0.0f);

  // mask_s = (rows q_s) / (rows m): the numerators, then the denominator they share.
  float *back = low.back.data(), *back_m = back + int64_t{S} * rank;
  for (int32_t s = 0; s < S; ++s) {
    for (int32_t i = 0; i < K; ++i) coefficient[i] = mask_grad[int64_t{s} * K + i] * u[i];
    loops.masks_backward(rows, ld, nodes, low.mask_moments.data() + int64_t{s} * rank, coefficient, value,
                         grad, back + int64_t{s} * rank);
  }
  const float* m = low.moments.data() + int64_t{last} * rank;
  for (int32_t i = 0; i < K; ++i) coefficient[i] = -value[i] * u[i];
  loops.masks_backward(rows, ld, nodes, m, coefficient, unused, grad, back_m);

  // Position j is part of every mask with k_s > j.
  for (int32_t s = S - 1; s >= 0; --s)
    for (int n = 0; n < rank; ++n) back[int64_t{s} * rank + n] += back[int64_t{s + 1} * rank + n];
  for (int32_t s = 0; s <= S; ++s)
    loops.combine(columns, ld, s ? state.ends[s - 1] : 0, state.ends[s], back + int64_t{s} * rank, v_grad);
  for (int32_t j = 0; j < K; ++j) coefficient[j] = -v_grad[j] * v[j] * v[j];

  float* m_grad = back_m + rank;
  loops.moments(columns, ld, 0, K, coefficient, m_grad);
  for (int t = last - 1; t >= 0; --t) {
    m -= rank;
    loops.rows_backward(rows, ld, nodes, state.u_at(t), m, m_grad, grad, back_m);
    if (t > 0) loops.columns_backward(columns, ld, state.v_at(t), back_m, m_grad);
  }
}

}  // namespace aha
