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
void gemm_dot_rows(int64_t rows, const Activations& x, const PackedWeights& weights, const Finish& finish) {
  constexpr int64_t kStepElements = kStrip * kStrip;
  const int64_t steps = weights.padded_inputs() / kStrip;
  int64_t block = kDotBlockBytes / (steps * kStrip * 2) / kStrip * kStrip;
  if (block < kStrip) block = kStrip;
  alignas(64) float buffer[kDotRows * kStrip];
  for (int64_t m0 = 0; m0 < rows; m0 += block) {
    const int64_t end = m0 + block < rows ? m0 + block : rows;
    for (int64_t n = 0; n < weights.padded_outputs(); n += kStrip) {
      const Bf16* panel = weights.bf16() + n / kStrip * steps * kStepElements;
      const auto finish_panel = finish.at(n);
      for (int64_t m = m0; m < end; m += kDotRows) {
        const int64_t height = end - m < kDotRows ? end - m : kDotRows;
        for (int64_t r = 0; r < height; ++r) finish_panel.fetch(m + r);
        const Bf16* left = x.bf16() + m / kStrip * steps * kStepElements + m % kStrip * kStrip;
        Vec sums[kDotRows][2] = {};
        for (int64_t s = 0; s < steps; ++s)
          dot_step<Hardware>(left + s * kStepElements, kStrip, panel + s * kStepElements, kStepElements / 2,
                             sums);
#pragma GCC unroll 8
        for (int r = 0; r < kDotRows; ++r) store_strip(buffer + r * kStrip, {{sums[r][0], sums[r][1]}});
        for (int64_t r = 0; r < height; ++r) finish_panel.finish(m + r, load_strip(buffer + r * kStrip));
      }
    }
  }
}

template <class Hardware, class Form>
void gemm_dots(int64_t rows, const Activations& x, const PackedWeights& weights, const Epilogue& epilogue) {
  std::visit([&](const auto& e) { gemm_dot_rows<Hardware>(rows, x, weights, finisher<Form>(e, weights)); },
             epilogue);
}

}  // namespace
}  // namespace aha
