// The loops that sinkhorn's time is spent in, once per instruction set. Plain numbers and pointers only: a
// translation unit compiled for an instruction set must not instantiate anything that the linker could choose
// for the rest of the program.
//
// Vectors of K numbers are padded with zeros to ld, a multiple of 16; matrices have ld floats a row. All are
// 64-byte aligned and followed by 16 floats that may be read.
#pragma once

#include <cstdint>

#include "aha/kernels/core/cpu.h"

namespace aha {

// The logits of one image: x_ij = slope_i * position_j + column_j + noise * gumbel_ij, in double: near the
// largest entry of a row they cancel to small numbers, and only those meet float32.
struct SinkhornLogits {
  int32_t K = 0, ld = 0;
  const double* slope = nullptr;     // (K) 2 a_i / tau
  const double* position = nullptr;  // (ld)
  const float* position32 = nullptr;
  const double* column = nullptr;  // (ld) -position^2 / tau; -1e300 in the padding, which exp turns into 0
  double noise = 0;                // divided by tau; 0 = none
  uint64_t seed = 0, stream = 0;
  double* x = nullptr;      // (ld) scratch
  float* gumbel = nullptr;  // (gumbel_row_size(K)) scratch
};

inline int32_t gumbel_blocks(int32_t K) {
  return (K + 63) / 64 * 16;
}
inline int32_t gumbel_row_size(int32_t K) {
  return 4 * gumbel_blocks(K);
}

// Products with F (rank x ld, one row a node) that one half-iteration needs. `out` of a range may be written
// up to 15 floats past its end.
struct LowRankLoops {
  int32_t rank;
  double steepest;  // largest max |a| / tau (for |p| <= 1/2) that this rank interpolates to 3e-8 of a row's
                    // largest entry

  // out = 1 / (m F) on the first K columns, 0 beyond;  next = F out
  void (*half_step)(const float* F, int32_t K, int32_t ld, const float* m, float* out, float* next);
  // out[begin..end) = m F
  void (*combine)(const float* F, int32_t ld, int32_t begin, int32_t end, const float* m, float* out);
  // m = F[begin..end) w
  void (*moments)(const float* F, int32_t ld, int32_t begin, int32_t end, const float* w, float* m);
  // value += coefficient * (m F);  slope += coefficient * (nodes m F);  back = F coefficient
  void (*masks_backward)(const float* F, int32_t ld, const float* nodes, const float* m,
                         const float* coefficient, float* value, float* slope, float* back);
  // Through u = 1 / (m_v F) with u_grad = m_grad F: see sinkhorn_low_rank.cpp.
  void (*rows_backward)(const float* F, int32_t ld, const float* nodes, const float* u, const float* m_v,
                        const float* m_grad, float* grad, float* back);
  // Through v = 1 / (h F) with v_grad = back F:  m_grad = F (-v_grad v^2)
  void (*columns_backward)(const float* F, int32_t ld, const float* v, const float* back, float* m_grad);
};

struct SinkhornLoops {
  Isa isa;

  void (*gumbel_row)(uint64_t seed, uint64_t stream, int32_t K, int64_t row, float* out);

  // kernel = softmax of each row;  log_row_i = its log-sum;  row_mean_i = sum_j kernel_ij position_j;
  // column_sum_j
  void (*row_softmax)(const SinkhornLogits& logits, float* kernel, double* log_row, float* row_mean,
                      float* column_sum);
  // log sum_i exp(x_ij - log_row_i), for columns whose sum underflows; most (ld) is scratch
  void (*column_log_sums)(const SinkhornLogits& logits, const double* log_row, double* most,
                          double* log_column);
  // kernel = exp(x_ij - log_row_i - log_column_j)
  void (*build)(const SinkhornLogits& logits, const double* log_row, const double* log_column, float* kernel);

  // u = 1 / (kernel v);  v_next = 1 / (kernel' u). True if all of them are in [1e-12, 1e12].
  bool (*sweep)(const float* kernel, int32_t K, int32_t ld, const float* v, float* u, float* v_next);
  // u = 1 / (kernel v);  masks of the segments that end at ends[0..segments), the last of them at K;  plan's
  // column sums
  void (*masks)(const float* kernel, int32_t K, int32_t ld, const float* v, const int32_t* ends,
                int32_t segments, float* u, float* masks, float* column_sum);
  // grad_i = sum_j p_j dlog(kernel_ij), v_grad; scratch holds ld + 16 + 3 * segments floats
  void (*masks_backward)(const float* kernel, int32_t K, int32_t ld, const float* v, const float* position,
                         const int32_t* ends, int32_t segments, const float* u, const float* mask_grad,
                         float* scratch, float* grad, float* v_grad);
  // Through v_next = 1 / (kernel' u) and u = 1 / (kernel v): grad gets its share; v_grad turns from v_next's
  // to v's. v_scale is v_next in this gauge times v_next in the gauge of v_grad. scratch holds 3 * ld floats.
  void (*sweep_backward)(const float* kernel, int32_t K, int32_t ld, const float* v_scale, const float* u,
                         const float* v, const float* position, float* scratch, float* grad, float* v_grad);

  // Through v = 1 / (kernel' 1) and the row softmax that made the first kernel.
  void (*first_backward)(const float* kernel, int32_t K, int32_t ld, const float* v_scale,
                         const float* position, const float* row_mean, const float* v_grad, float* grad);

  // factor_ni = exp(slope_i node_n + column_n - most_i)
  void (*low_rank_rows)(const double* slope, const double* most, int32_t K, int32_t ld, const double* nodes,
                        const double* column, int32_t rank, float* factor);
  const LowRankLoops* low_rank;
  int32_t low_rank_count;
};

extern const SinkhornLoops kSinkhornPortable, kSinkhornAvx2, kSinkhornAvx512;

// The best of them that runs here.
const SinkhornLoops& sinkhorn_loops();

}  // namespace aha
