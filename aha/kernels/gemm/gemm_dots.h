// Products on dot products of bf16 pairs, in vector registers (dot_step.h). Operands lie as for tiles.
//
// A block of rows stays in the second level cache (kDotBlockBytes) while the weight panels pass by. Each sum
// is one chain in the order of the inputs. The hardware's own prefetching is enough: 82 to 91 % of a Zen 4
// core's peak at the shapes of ViT-B/16 and of a small ViT, with bias or GELU.
#pragma once

#include "aha/kernels/gemm/dot_step.h"
#include "aha/kernels/gemm/epilogues.h"

namespace aha {
namespace {

constexpr int64_t kDotBlockBytes = int64_t{1} << 19;

template <class Hardware, class Finish>
void gemm_dot_rows(const GemmPart& part, const Activations& x, const PackedWeights& weights,
                   const Finish& finish) {
  constexpr int64_t kStepElements = kPanel * kPanel;
  const int64_t steps = weights.padded_inputs() / kPanel;
  int64_t block = kDotBlockBytes / (steps * kPanel * 2) / kPanel * kPanel;
  if (block < kPanel) block = kPanel;
  alignas(64) float buffer[kDotRows * kPanel];
  for (int64_t m0 = part.first_row; m0 < part.end_row; m0 += block) {
    const int64_t end = m0 + block < part.end_row ? m0 + block : part.end_row;
    for (int64_t n = part.first_column; n < part.end_column; n += kPanel) {
      const Bf16* panel = weights.bf16() + n / kPanel * steps * kStepElements;
      const auto finish_panel = finish.at(n);
      for (int64_t m = m0; m < end; m += kDotRows) {
        const int64_t height = end - m < kDotRows ? end - m : kDotRows;
        for (int64_t r = 0; r < height; ++r) finish_panel.fetch(m + r);
        const Bf16* left = x.bf16() + m / kPanel * steps * kStepElements + m % kPanel * kPanel;
        Vec sums[kDotRows][2] = {};
        for (int64_t s = 0; s < steps; ++s)
          dot_step<Hardware>(left + s * kStepElements, kPanel, panel + s * kStepElements, kStepElements / 2,
                             sums);
#pragma GCC unroll 8
        for (int r = 0; r < kDotRows; ++r) store_panel(buffer + r * kPanel, {{sums[r][0], sums[r][1]}});
        for (int64_t r = 0; r < height; ++r) finish_panel.finish(m + r, load_panel(buffer + r * kPanel));
      }
    }
  }
}

template <class Hardware, class Form>
void gemm_dots(const GemmPart& part, const Activations& x, const PackedWeights& weights,
               const Epilogue& epilogue) {
  std::visit([&](const auto& e) { gemm_dot_rows<Hardware>(part, x, weights, finisher<Form>(e, weights)); },
             epilogue);
}

}  // namespace
}  // namespace aha
