// The gradient of weights on bf16 tiles: dy transposed, x interleaved, 32 x 32 elements at a time, then a
// GEMM. Rows of dy and x from `rows` on count as zero.
#pragma once

#include "aha/kernels/core/transpose_vector.h"
#include "aha/kernels/weight_gradient/column_sums.h"
#include "aha/kernels/weight_gradient/tile_operands.h"

namespace aha {
namespace {

constexpr int64_t kBlockElements = kPanel * kPanel;

// Rows 2p and 2p + 1 of a 32 x 32 block, element by element: columns 0..15 to first, 16..31 to second.
struct RowPair {
  __m512i first, second;
};
inline RowPair row_pair(const Bf16* block, int64_t p, int64_t live) {
  const auto row = [&](int64_t r) {
    return r < live ? _mm512_load_si512(block + r * kPanel) : _mm512_setzero_si512();
  };
  const __m512i even = row(2 * p), odd = row(2 * p + 1);
  return {interleaved(_mm512_castsi512_si256(even), _mm512_castsi512_si256(odd)),
          interleaved(_mm512_extracti64x4_epi64(even, 1), _mm512_extracti64x4_epi64(odd, 1))};
}

// A tile of the left operand holds 16 columns of dy, each as 16 pairs of rows: the interleaved rows,
// transposed as 32-bit elements.
inline void transpose_tiles(int64_t rows, const Activations& dy, Activations& left) {
  for (int64_t r0 = 0; r0 < rows; r0 += kPanel)
    for (int64_t s = 0; s < dy.panels(); ++s)
      for (int64_t plane = 0; plane < dy.planes(); ++plane) {
        const Bf16* from = dy.bf16() + dy.panel_offset(r0, s) + plane * kBlockElements;
        Bf16* to = left.bf16() + left.panel_offset(s * kPanel, r0 / kPanel) + plane * kBlockElements;
        __m512i first[16], second[16];
        for (int p = 0; p < 16; ++p) {
          const RowPair pair = row_pair(from, p, rows - r0);
          first[p] = pair.first;
          second[p] = pair.second;
        }
        transpose(first);
        transpose(second);
        for (int n = 0; n < 16; ++n) {
          _mm512_store_si512(to + n * kPanel, first[n]);
          _mm512_store_si512(to + (16 + n) * kPanel, second[n]);
        }
      }
}

inline void interleave_tiles(int64_t rows, const Activations& x, PackedWeights& right) {
  const int64_t steps = right.padded_inputs() / kPanel;
  for (int64_t r0 = 0; r0 < rows; r0 += kPanel)
    for (int64_t s = 0; s < x.panels(); ++s)
      for (int64_t plane = 0; plane < x.planes(); ++plane) {
        const Bf16* from = x.bf16() + x.panel_offset(r0, s) + plane * kBlockElements;
        Bf16* to = right.bf16() + ((s * steps + r0 / kPanel) * x.planes() + plane) * kBlockElements;
        for (int p = 0; p < 16; ++p) {
          const RowPair pair = row_pair(from, p, rows - r0);
          _mm512_store_si512(to + p * kPanel, pair.first);
          _mm512_store_si512(to + kBlockElements / 2 + p * kPanel, pair.second);
        }
      }
}

template <class Form>
void weight_gradient_tiles(const KernelSet& kernels, int64_t rows, const WeightGradient& job) {
  TileOperands& operands = tile_operands(Form::kFormat, job.dy->columns(), job.x->columns(), rows);
  transpose_tiles(rows, *job.dy, operands.left);
  interleave_tiles(rows, *job.x, operands.right);
  multiply_operands(kernels, operands, job);
  if (job.bias) add_column_sums<Form>(rows, *job.dy, job.bias);
}

template <class Form>
void operand_from_rows_panels(int64_t rows, const float* x, int64_t stride, Activations& out) {
  const PanelsOf<Form> panels(out);
  const int64_t whole = out.columns() / kPanel, rest = out.columns() % kPanel;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t s = 0; s < whole; ++s) panels.put(r, s, load_panel(x + r * stride + s * kPanel));
    if (rest == 0) continue;
    alignas(64) float last[kPanel] = {};
    for (int64_t c = 0; c < rest; ++c) last[c] = x[r * stride + whole * kPanel + c];
    panels.put(r, whole, load_panel(last));
  }
}

}  // namespace
}  // namespace aha
