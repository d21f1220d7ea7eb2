// What a SinkhornWorkspace holds: the problem in the units of the loops, the scaling vectors of every
// iteration, and the kernel of one path.
#pragma once

#include <vector>

#include "aha/kernels/core/buffer.h"
#include "aha/kernels/sinkhorn/sinkhorn.h"
#include "aha/kernels/sinkhorn/sinkhorn_loops.h"

namespace aha {

// exp(L) is held divided by row and column factors. A gauge serves the iterations from `first` to the next
// gauge's.
struct SinkhornGauge {
  int first = 1;
  std::vector<double> log_row, log_column;  // the factors' logarithms
  std::vector<float> v_before;              // v of iteration `first` in the gauge before; it is 1 in this one
};

struct SinkhornWorkspace::State {
  const SinkhornLoops* loops = nullptr;  // null = the best for this CPU
  SinkhornPath path = SinkhornPath::kAuto;

  int32_t K = 0, ld = 0, S = 0, iterations = 0;
  double tau = 1, noise = 0;
  uint64_t seed = 0, stream = 0;
  double steepest = 0, spread = 0;  // largest and root-mean-square |score|, centered
  std::vector<int32_t> ends;        // ks and, as the last segment's end, K

  AlignedBuffer<double> slope;              // (K) 2 a / tau
  AlignedBuffer<double> position64;         // (ld), centered
  AlignedBuffer<float> position;            // (ld)
  AlignedBuffer<float> u, v;                // (iterations + 1, ld)
  AlignedBuffer<float> grad, v_grad, work;  // scratch

  struct Dense {
    AlignedBuffer<double> column, x;
    AlignedBuffer<float> gumbel, kernel, row_mean;
    std::vector<SinkhornGauge> gauges;
    size_t built = 0;  // the gauge that `kernel` is in
  } dense;

  struct LowRank {
    const LowRankLoops* loops = nullptr;
    std::vector<double> nodes64, most, column;
    std::vector<float> nodes;                             // (rank)
    AlignedBuffer<float> rows;                            // (rank, ld) regions
    std::shared_ptr<const AlignedBuffer<float>> columns;  // (rank, ld) positions
    AlignedBuffer<float> moments;                         // (iterations + 1, rank) columns * v
    AlignedBuffer<float> mask_moments;                    // (S, rank) columns * v over the first k
    AlignedBuffer<float> back;                            // (S + 2, rank) scratch
  } low_rank;

  float* u_at(int t) { return u.data() + static_cast<int64_t>(t) * ld; }
  float* v_at(int t) { return v.data() + static_cast<int64_t>(t) * ld; }
  int64_t bytes() const;
};

SinkhornReport sinkhorn_dense_forward(SinkhornWorkspace::State& state, float* masks);
void sinkhorn_dense_backward(SinkhornWorkspace::State& state, const float* mask_grad);  // fills state.grad

// The smallest rank that holds these scores, null if none does or dense is faster.
const LowRankLoops* usable_low_rank(const SinkhornWorkspace::State& state);
// False if the scores turned out too uneven for float32 factors; masks are then meaningless.
bool sinkhorn_low_rank_forward(SinkhornWorkspace::State& state, float* masks, SinkhornReport& report);
void sinkhorn_low_rank_backward(SinkhornWorkspace::State& state, const float* mask_grad);

}  // namespace aha
