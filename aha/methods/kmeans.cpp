#include "aha/methods/kmeans.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "aha/base/parallel.h"
#include "aha/kernels/kernel_set.h"
#include "aha/nn/row_gemm.h"

namespace aha {
namespace {

constexpr int64_t kDotsAtOnce = 1 << 22;  // 16 MB

Tensor drawn_rows(const Tensor& rows, int64_t count, Rng& rng) {
  auto drawn = torch::empty({count}, torch::kInt64);
  for (int64_t i = 0; i < count; ++i)
    drawn.data_ptr<int64_t>()[i] = static_cast<int64_t>(rng.below(static_cast<uint64_t>(rows.size(0))));
  return rows.index_select(0, drawn);
}

class Lloyd {
 public:
  Lloyd(const Tensor& rows, const Tensor& first, const Context& context)
      : rows_(rows),
        centroids_(first),
        context_(context),
        N_(rows.size(0)),
        D_(rows.size(1)),
        K_(first.size(0)),
        nearest_(N_, -1),
        score_(N_),
        moved_(K_, true),
        changed_(K_, true) {}

  // Assigns rows, then moves the centroids; the sum of their squared shifts.
  double step() {
    assign();
    return move();
  }
  const Tensor& centroids() const { return centroids_; }

 private:
  void assign() {
    std::vector<int64_t> again, others, all(K_), moved;
    std::iota(all.begin(), all.end(), 0);
    for (int64_t c = 0; c < K_; ++c)
      if (moved_[c]) moved.push_back(c);
    for (int64_t i = 0; i < N_; ++i) {
      const bool afresh = nearest_[i] < 0 || moved_[nearest_[i]];
      (afresh ? again : others).push_back(i);
      if (afresh) score_[i] = -std::numeric_limits<float>::infinity();
    }
    const std::vector<int64_t> before = nearest_;
    compare(again, all);
    compare(others, moved);
    for (int64_t i = 0; i < N_; ++i)
      if (nearest_[i] != before[i]) {
        if (before[i] >= 0) changed_[before[i]] = true;
        changed_[nearest_[i]] = true;
      }
  }

  // The best so far of these rows against these centroids; of equal ones the first wins.
  void compare(const std::vector<int64_t>& rows, const std::vector<int64_t>& candidates) {
    if (rows.empty() || candidates.empty()) return;
    const auto C = static_cast<int64_t>(candidates.size());
    const Tensor centroids = centroids_.index_select(0, torch::tensor(candidates, torch::kInt64));  // (C, D)
    auto half_norms = torch::empty({C});
    for (int64_t c = 0; c < C; ++c) {
      const float* row = centroids.data_ptr<float>() + c * D_;
      half_norms.data_ptr<float>()[c] =
          static_cast<float>(-0.5 * std::inner_product(row, row + D_, row, 0.0));
    }
    const int64_t at_once = std::max<int64_t>(1, kDotsAtOnce / C), count = static_cast<int64_t>(rows.size());
    for (int64_t first = 0; first < count; first += at_once) {
      context_.cancel->check();
      const std::vector<int64_t> some(rows.begin() + first, rows.begin() + std::min(first + at_once, count));
      const Tensor x = rows_.index_select(0, torch::tensor(some, torch::kInt64)),
                   scores = linear_by_rows(best_kernel_set(Precision::kF32), x, centroids, half_norms)
                                .contiguous();  // (n, C)
      const float* all = scores.data_ptr<float>();
      constexpr int64_t kBlock = 64;  // rows
      const int64_t n = scores.size(0);
      parallel_for((n + kBlock - 1) / kBlock, [&](int64_t block, int) {
        for (int64_t r = block * kBlock; r < std::min((block + 1) * kBlock, n); ++r)
          improve(some[r], all + r * C, candidates);
      });
    }
  }

  void improve(int64_t i, const float* scores, const std::vector<int64_t>& candidates) {
    const auto C = static_cast<int64_t>(candidates.size());
    float best = scores[0];
#pragma omp simd reduction(max : best)
    for (int64_t c = 0; c < C; ++c) best = scores[c] > best ? scores[c] : best;
    if (best < score_[i]) return;
    const int64_t winner = candidates[std::find(scores, scores + C, best) - scores];
    if (best > score_[i] || winner < nearest_[i]) score_[i] = best, nearest_[i] = winner;
  }

  double move() {
    std::vector<std::vector<int64_t>> members(K_);
    for (int64_t i = 0; i < N_; ++i)
      if (changed_[nearest_[i]]) members[nearest_[i]].push_back(i);
    std::vector<double> shifts(K_);
    const float* rows = rows_.data_ptr<float>();
    parallel_for(K_, [&](int64_t c, int) {
      moved_[c] = false;
      if (!changed_[c]) return;
      changed_[c] = false;
      std::vector<double> mean(D_);
      for (const int64_t i : members[c])
        for (int64_t d = 0; d < D_; ++d) mean[d] += rows[i * D_ + d];
      float* centroid = centroids_.data_ptr<float>() + c * D_;
      for (int64_t d = 0; d < D_; ++d) {
        const auto now =
            members[c].empty() ? 0.f : static_cast<float>(mean[d] / static_cast<double>(members[c].size()));
        const double by = static_cast<double>(now) - centroid[d];
        shifts[c] += by * by;
        if (now != centroid[d]) moved_[c] = true;
        centroid[d] = now;
      }
    });
    return std::accumulate(shifts.begin(), shifts.end(), 0.0);
  }

  const Tensor rows_;
  Tensor centroids_;
  const Context& context_;
  const int64_t N_, D_, K_;
  std::vector<int64_t> nearest_;
  std::vector<float> score_;              // x . c - |c|^2 / 2 of the nearest
  std::vector<uint8_t> moved_, changed_;  // the centroid in the last step; its members since then
};

}  // namespace

KMeans k_means(const Tensor& rows, const KMeansOptions& options, Rng& rng, const Context& context) {
  const Tensor x = rows.contiguous();
  Lloyd lloyd(x, drawn_rows(x, options.clusters, rng), context);
  int done = 0;
  while (done < options.iterations) {
    ++done;
    if (lloyd.step() <= options.tolerance) break;
  }
  return {lloyd.centroids(), done};
}

KMeans k_means_plain(const Tensor& rows, const KMeansOptions& options, Rng& rng) {
  const Tensor x = rows.to(torch::kFloat64);
  Tensor centroids = drawn_rows(rows, options.clusters, rng).to(torch::kFloat64);
  int done = 0;
  while (done < options.iterations) {
    ++done;
    const Tensor nearest = (x.unsqueeze(1) - centroids.unsqueeze(0)).square().sum(2).argmin(1);  // (N)
    Tensor next = torch::zeros_like(centroids);
    for (int64_t c = 0; c < options.clusters; ++c) {
      const Tensor members = x.index({nearest == c});
      if (members.size(0) > 0) next[c] = members.mean(0);
    }
    const double shift = (next - centroids).square().sum().item<double>();
    centroids = next;
    if (shift <= options.tolerance) break;
  }
  return {centroids.to(torch::kFloat32), done};
}

}  // namespace aha
