// GEMM on bf16 tiles.
//
// Four tiles hold 32 x 32 sums; a step (32 inputs) loads two tiles of x and two of the weights for four
// multiplications. A pair adds high * low and low * high: twelve multiplications for ten loads. While a block
// is multiplied, the rows of the block before it go through the epilogue, a few a step, so that vector and
// tile units work at the same time; its output lines and the next weight panel are fetched meanwhile.
//
// The constants come from a prototype of this scheme on one core of a Sapphire-Rapids-class machine (3152
// rows, bias, float32 out): 1455 GFLOP/s at K = 768, N = 3072, and 1496 at K = 3072, N = 768 with 416 rows a
// block and passes of 768 inputs, the sums of unfinished passes waiting in the second level cache; 128 rows
// and one pass: 1330.
#pragma once

#include "aha/kernels/gemm/epilogues.h"

namespace aha {
namespace {

constexpr int64_t kTile = 512;                   // bf16 elements
constexpr int64_t kBlockSums = kPanel * kPanel;  // floats of 32 x 32 sums
constexpr int64_t kStepsPerPass = 24;
template <int kPlanes>
constexpr int64_t kFetchLines = kPlanes == 1 ? 4 : 12;

// Sums (tiles 0..3) += 32 rows of x times 32 columns of the weights.
template <class Hardware, int kPlanes>
[[gnu::always_inline]] inline void multiply_step(const Bf16* x, const Bf16* w) {
  Hardware::template load<4>(x, 64);
  Hardware::template load<6>(w, 64);
  Hardware::template multiply_add<0, 4, 6>();
  Hardware::template load<7>(w + kTile, 64);
  Hardware::template multiply_add<1, 4, 7>();
  Hardware::template load<5>(x + kTile, 64);
  Hardware::template multiply_add<2, 5, 6>();
  Hardware::template multiply_add<3, 5, 7>();
  if constexpr (kPlanes == 2) {
    const Bf16 *x_low = x + 2 * kTile, *w_low = w + 2 * kTile;
    Hardware::template load<6>(w_low, 64);
    Hardware::template multiply_add<0, 4, 6>();
    Hardware::template load<7>(w_low + kTile, 64);
    Hardware::template multiply_add<1, 4, 7>();
    Hardware::template multiply_add<2, 5, 6>();
    Hardware::template multiply_add<3, 5, 7>();
    Hardware::template load<4>(x_low, 64);
    Hardware::template load<6>(w, 64);
    Hardware::template multiply_add<0, 4, 6>();
    Hardware::template load<7>(w + kTile, 64);
    Hardware::template multiply_add<1, 4, 7>();
    Hardware::template load<5>(x_low + kTile, 64);
    Hardware::template multiply_add<2, 5, 6>();
    Hardware::template multiply_add<3, 5, 7>();
  }
}

template <class Hardware>
inline void load_sums(const float* sums) {
  Hardware::template load<0>(sums, kPanel * 4);
  Hardware::template load<1>(sums + 16, kPanel * 4);
  Hardware::template load<2>(sums + 16 * kPanel, kPanel * 4);
  Hardware::template load<3>(sums + 16 * kPanel + 16, kPanel * 4);
}

template <class Hardware>
inline void store_sums(float* sums) {
  Hardware::template store<0>(sums, kPanel * 4);
  Hardware::template store<1>(sums + 16, kPanel * 4);
  Hardware::template store<2>(sums + 16 * kPanel, kPanel * 4);
  Hardware::template store<3>(sums + 16 * kPanel + 16, kPanel * 4);
}

template <class Hardware>
inline void zero_sums() {
  Hardware::template zero<0>();
  Hardware::template zero<1>();
  Hardware::template zero<2>();
  Hardware::template zero<3>();
}

// 32 x 32 sums whose epilogue has still to run.
template <class Panel>
struct Pending {
  const float* sums = nullptr;
  int64_t row = 0, rows = 0;  // first row, and how many exist (0 = nothing is pending)
  Panel panel;

  void finish(int64_t r) const { panel.finish(row + r, load_panel(sums + r * kPanel)); }
};

// The part of the next weight panel that is still to be fetched; a block takes kFetchLines cache lines of it
// a step.
struct Fetch {
  const char* from = nullptr;
  int64_t bytes = 0;
};

// kRowsPerStep rows of `before` are finished a step: a constant, so that no division and no short loop stands
// between the tile instructions.
template <class Hardware, int kPlanes, int kRowsPerStep, class Panel>
inline void multiply_block(const Bf16* x, const Bf16* w, int64_t steps, float* sums, bool first_pass,
                           const Pending<Panel>& before, const Pending<Panel>& now, Fetch fetch) {
  constexpr int64_t kStepElements = 2 * kTile * kPlanes;
  if (first_pass)
    zero_sums<Hardware>();
  else
    load_sums<Hardware>(sums);
  const auto step = [&](int64_t s) __attribute__((always_inline)) {
    multiply_step<Hardware, kPlanes>(x + s * kStepElements, w + s * kStepElements);
    if (const int64_t at = s * kFetchLines<kPlanes> * 64; at < fetch.bytes)
      for (int64_t i = 0; i < kFetchLines<kPlanes>; ++i) _mm_prefetch(fetch.from + at + i * 64, _MM_HINT_T1);
  };
  int64_t s = 0, done = 0;
  for (; s < steps && done + kRowsPerStep <= before.rows; ++s) {
    step(s);
#pragma GCC unroll 8
    for (int r = 0; r < kRowsPerStep; ++r) before.finish(done + r);
#pragma GCC unroll 8
    for (int r = 0; r < kRowsPerStep; ++r)
      if (done + r < now.rows) now.panel.fetch(now.row + done + r);
    done += kRowsPerStep;
  }
  for (; s < steps; ++s) step(s);
  for (; done < before.rows; ++done) before.finish(done);
  store_sums<Hardware>(sums);
}

template <class Hardware, class Form, int kRowsPerStep, class Finish>
void gemm_passes(const GemmPart& part, const Activations& x, const PackedWeights& weights,
                 const Finish& finish, int64_t passes) {
  constexpr int kPlanes = Form::kPlanes;
  constexpr int64_t kStepElements = 2 * kTile * kPlanes, kRowBlocks = kPlanes == 1 ? 13 : 6;
  using Panel = decltype(finish.at(0));
  static thread_local AlignedBuffer<float> scratch;

  const int64_t steps = weights.padded_inputs() / kPanel, steps_per_pass = (steps + passes - 1) / passes;
  const int64_t first_panel = part.first_column / kPanel, end_panel = part.end_column / kPanel,
                end_block = rounded_to_panel(part.end_row) / kPanel;
  float* sums = scratch.at_least((passes == 1 ? 2 : (end_panel - first_panel) * kRowBlocks) * kBlockSums);
  Pending<Panel> before{nullptr, 0, 0, finish.at(part.first_column)};
  int64_t count = 0;
  Hardware::begin();
  for (int64_t m0 = part.first_row / kPanel; m0 < end_block; m0 += kRowBlocks) {
    const int64_t m_end = m0 + kRowBlocks < end_block ? m0 + kRowBlocks : end_block;
    for (int64_t pass = 0; pass < passes; ++pass) {
      const int64_t k0 = pass * steps_per_pass,
                    k1 = k0 + steps_per_pass < steps ? k0 + steps_per_pass : steps;
      const bool last_pass = pass == passes - 1;
      for (int64_t n = first_panel; n < end_panel; ++n) {
        const Panel panel = finish.at(n * kPanel);
        const Bf16* w = weights.bf16() + (n * steps + k0) * kStepElements;
        const Bf16* next = n + 1 < end_panel ? w + steps * kStepElements
                           : last_pass       ? nullptr
                                             : weights.bf16() + (first_panel * steps + k1) * kStepElements;
        Fetch fetch{reinterpret_cast<const char*>(next), next ? (k1 - k0) * kStepElements * 2 : 0};
        for (int64_t m = m0; m < m_end; ++m) {
          float* block = passes == 1 ? sums + (count++ & 1) * kBlockSums
                                     : sums + ((n - first_panel) * kRowBlocks + m - m0) * kBlockSums;
          const int64_t live = part.end_row - m * kPanel < kPanel ? part.end_row - m * kPanel : kPanel;
          const Pending<Panel> now{block, m * kPanel, last_pass ? live : 0, panel};
          multiply_block<Hardware, kPlanes, kRowsPerStep>(x.bf16() + (m * steps + k0) * kStepElements, w,
                                                          k1 - k0, block, pass == 0, before, now, fetch);
          before = now;
          const int64_t fetched = (k1 - k0) * kFetchLines<kPlanes> * 64;
          fetch.from += fetched;
          fetch.bytes -= fetched;
        }
      }
    }
  }
  for (int64_t r = 0; r < before.rows; ++r) before.finish(r);
  Hardware::end();
}

template <class Hardware, class Form>
void gemm_tiles(const GemmPart& part, const Activations& x, const PackedWeights& weights,
                const Epilogue& epilogue) {
  const int64_t steps = weights.padded_inputs() / kPanel;
  const int64_t passes = (steps + kStepsPerPass - 1) / kStepsPerPass,
                per_pass = (steps + passes - 1) / passes;
  std::visit(
      [&](const auto& e) {
        const auto finish = finisher<Form>(e, weights);
        if (per_pass >= 16)
          gemm_passes<Hardware, Form, 2>(part, x, weights, finish, passes);
        else if (per_pass >= 8)
          gemm_passes<Hardware, Form, 4>(part, x, weights, finish, passes);
        else
          gemm_passes<Hardware, Form, 8>(part, x, weights, finish, passes);
      },
      epilogue);
}

}  // namespace
}  // namespace aha
