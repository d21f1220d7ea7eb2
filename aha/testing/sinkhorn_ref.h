// The obvious Sinkhorn of kernels/sinkhorn/sinkhorn.h: log domain, double precision, one half-step after the
// other.
#pragma once

#include <cmath>
#include <numeric>
#include <vector>

#include "aha/base/rng.h"
#include "aha/kernels/sinkhorn/gumbel.h"
#include "aha/kernels/sinkhorn/sinkhorn.h"
#include "aha/kernels/sinkhorn/sinkhorn_loops.h"

namespace aha {

// The logits and the sums subtracted so far: log plan = logits - rows - columns.
struct Potentials {
  std::vector<double> rows, columns;
};

class LogPlan {
 public:
  LogPlan(int64_t K, std::vector<double> logits) : K_(K), logits_(std::move(logits)) {}

  double at(int64_t i, int64_t j, const Potentials& at) const {
    return logits_[i * K_ + j] - at.rows[i] - at.columns[j];
  }

  void normalize(bool over_rows, Potentials& now) const {
    for (int64_t a = 0; a < K_; ++a) {
      double most = -INFINITY, sum = 0;
      for (int64_t b = 0; b < K_; ++b) most = std::max(most, over_rows ? at(a, b, now) : at(b, a, now));
      for (int64_t b = 0; b < K_; ++b) sum += std::exp((over_rows ? at(a, b, now) : at(b, a, now)) - most);
      (over_rows ? now.rows : now.columns)[a] += most + std::log(sum);
    }
  }

  // y = x - logsumexp(x) along a line gives  x_grad = y_grad - exp(y) * sum(y_grad).
  void normalize_backward(bool over_rows, const Potentials& after, std::vector<double>& grad) const {
    for (int64_t a = 0; a < K_; ++a) {
      double sum = 0;
      for (int64_t b = 0; b < K_; ++b) sum += grad[over_rows ? a * K_ + b : b * K_ + a];
      for (int64_t b = 0; b < K_; ++b) {
        const int64_t i = over_rows ? a : b, j = over_rows ? b : a;
        grad[i * K_ + j] -= std::exp(at(i, j, after)) * sum;
      }
    }
  }

 private:
  int64_t K_;
  std::vector<double> logits_;
};

struct SinkhornReference {
  std::vector<double> plan;        // (K, K) regions x positions
  std::vector<double> masks;       // (S, K)
  std::vector<double> score_grad;  // (K), empty without mask_grad
};

inline SinkhornReference sinkhorn_ref(const SinkhornProblem& problem, std::span<const float> mask_grad = {}) {
  const auto K = static_cast<int64_t>(problem.scores.size());
  const auto S = static_cast<int64_t>(problem.ks.size());
  const double mean = std::accumulate(problem.scores.begin(), problem.scores.end(), 0.0) / K;
  std::vector<double> score(K), position(K), logits(K * K);
  for (int64_t i = 0; i < K; ++i) {
    score[i] = problem.scores[i] - mean;
    position[i] = (K - i) / double(K) - (K + 1) / (2.0 * K);
  }
  std::vector<float> noise(K * K);
  if (problem.noise > 0) gumbel_rows(problem.seed, problem.stream, K, 0, noise);
  for (int64_t i = 0; i < K; ++i) {
    for (int64_t j = 0; j < K; ++j) {
      const double distance = score[i] - position[j];
      logits[i * K + j] = (-distance * distance + problem.noise * noise[i * K + j]) / problem.tau;
    }
  }

  const LogPlan plan(K, std::move(logits));
  std::vector<Potentials> after;  // of every half-step: rows, columns, rows, ..., rows
  Potentials now{std::vector<double>(K, 0.0), std::vector<double>(K, 0.0)};
  const int half_steps = 2 * problem.iterations + 1;
  for (int step = 0; step < half_steps; ++step) {
    plan.normalize(step % 2 == 0, now);
    after.push_back(now);
  }

  SinkhornReference result;
  result.plan.resize(K * K);
  for (int64_t i = 0; i < K; ++i)
    for (int64_t j = 0; j < K; ++j) result.plan[i * K + j] = std::exp(plan.at(i, j, now));
  result.masks.assign(S * K, 0.0);
  for (int64_t s = 0; s < S; ++s)
    for (int64_t i = 0; i < K; ++i)
      for (int64_t j = 0; j < problem.ks[s]; ++j) result.masks[s * K + i] += result.plan[i * K + j];
  if (mask_grad.empty()) return result;

  std::vector<double> grad(K * K, 0.0);  // of the log plan
  for (int64_t s = 0; s < S; ++s)
    for (int64_t i = 0; i < K; ++i)
      for (int64_t j = 0; j < problem.ks[s]; ++j)
        grad[i * K + j] += mask_grad[s * K + i] * result.plan[i * K + j];
  for (int step = half_steps - 1; step >= 0; --step)
    plan.normalize_backward(step % 2 == 0, after[step], grad);

  result.score_grad.assign(K, 0.0);
  double total = 0;
  for (int64_t i = 0; i < K; ++i) {
    for (int64_t j = 0; j < K; ++j)
      result.score_grad[i] += grad[i * K + j] * 2 * (position[j] - score[i]) / problem.tau;
    total += result.score_grad[i];
  }
  for (double& g : result.score_grad) g -= total / K;  // the centering
  return result;
}

// One number of Gumbel noise (kernels/sinkhorn/gumbel.h), from Rng alone.
inline double gumbel_ref(uint64_t seed, uint64_t stream, int64_t K, int64_t row, int64_t column) {
  const int64_t blocks = gumbel_blocks(static_cast<int32_t>(K));
  const auto block = Rng(seed, stream).block(row * blocks + column % blocks);
  return -std::log(-std::log(double(Rng::unit_from_bits(block[column / blocks]))));
}

}  // namespace aha
