// All kernels of one instruction set and one number format. A network is written once, over a KernelSet.
//
// The members are called through the checked functions of gemm.h, packed_weights.h, attention.h,
// rope.h, swiglu.h, layer_norm.h, depthwise.h, convolution.h, elementwise.h, compose.h, weight_gradient.h and
// sinkhorn.h. Which sets exist, best first, is the list in kernel_set.cpp. The members are
// single-threaded and compute parts of a result: the checked functions share these with idle workers
// (base/shared_for.h), and each value is the same in any part.
#pragma once

#include <string_view>
#include <vector>

#include "aha/base/context.h"
#include "aha/kernels/attention/attention.h"
#include "aha/kernels/compose/compose.h"
#include "aha/kernels/convolution/convolution.h"
#include "aha/kernels/core/cpu.h"
#include "aha/kernels/depthwise/depthwise.h"
#include "aha/kernels/gemm/gemm.h"
#include "aha/kernels/layer_norm/layer_norm.h"
#include "aha/kernels/rope/rope.h"
#include "aha/kernels/weight_gradient/weight_gradient.h"

namespace aha {

struct SinkhornLoops;

struct KernelSet {
  std::string_view name;
  Isa isa = Isa::kReference;
  Format format = Format::kF32;
  const KernelSet* exact =
      nullptr;  // for the few operands that must not be rounded; null = this set is exact

  void (*gemm)(const GemmPart& part, const Activations& x, const PackedWeights& weights,
               const Epilogue& epilogue) = nullptr;
  // Of `to`: the blocks of 32 outputs from one on to another.
  void (*transpose_weights)(const PackedWeights& from, PackedWeights& to, int64_t first,
                            int64_t end) = nullptr;
  void (*attention_forward)(const AttentionInput& input, const AttentionPart& part, Activations& out,
                            float* log_sum_exp) = nullptr;
  void (*attention_backward)(const AttentionInput& input, int64_t image, int64_t head,
                             const AttentionGradient& job) = nullptr;
  void (*attention_weights)(const AttentionInput& input, int64_t head, const AttentionWeights& job) = nullptr;
  // Heads counted through all images, from one on to another; the same of the rows of a gradient.
  void (*rotate_heads)(int64_t first, int64_t end, const RopeAngles& rope, Heads& heads) = nullptr;
  void (*rotate_gradient)(int64_t first, int64_t end, const RopeAngles& rope,
                          const RopeGradient& job) = nullptr;
  // Rows from one on to another.
  void (*swiglu)(int64_t first, int64_t end, const Activations& gates, Activations& out) = nullptr;
  void (*swiglu_backward)(int64_t first, int64_t end, const Activations& gates, const Activations& dout,
                          Activations& dgates) = nullptr;
  void (*layer_norm)(int64_t first, int64_t end, const float* x, int64_t stride, float epsilon,
                     Activations& xhat, float* rstd) = nullptr;
  void (*layer_norm_backward)(int64_t first, int64_t end, const LayerNormGradient& job) = nullptr;
  // Of the panels of 32 channels of all these lines, panel by panel: those from one on to another.
  void (*depthwise)(int64_t first_line, int64_t lines, int64_t first, int64_t end,
                    const DepthwiseJob& job) = nullptr;
  void (*depthwise_weight_gradient)(int64_t images, const DepthwiseWeightGradient& job) = nullptr;
  void (*convolution)(int64_t lines, const ConvolutionJob& job) = nullptr;
  void (*gelu)(int64_t n, const float* x, float* y, float* derivative) = nullptr;
  void (*softmax_rows)(int64_t rows, int64_t columns, float* x, int64_t stride, float* log_sum_exp) = nullptr;
  void (*compose)(const PatchSource& source, const float* keep, int64_t first_row,
                  Activations& rows) = nullptr;
  void (*compose_backward)(const PatchSource& source, const float* gradient, int64_t stride,
                           float* d_keep) = nullptr;
  void (*weight_gradient)(const KernelSet& kernels, int64_t rows, const WeightGradient& job) = nullptr;
  void (*operand_from_rows)(int64_t rows, const float* x, int64_t stride, Activations& out) = nullptr;
  const SinkhornLoops* sinkhorn = nullptr;  // float32 in every set
};

inline const KernelSet& exact_set_of(const KernelSet& kernels) {
  return kernels.exact ? *kernels.exact : kernels;
}

// The best set for this precision at this level or below it. Without tiles and without fast bf16 dot products
// (cpu.h), kBf16 gets float32 as well.
const KernelSet& kernel_set(Isa isa, Precision precision);

// kernel_set(best_isa(), precision); the choice is logged once, for --verbose.
const KernelSet& best_kernel_set(Precision precision);

// The obvious loops with float64 sums, for every form of operand: what the others are tested against.
const KernelSet& reference_kernels(Format format);

// Every set that runs on this machine, best first.
std::vector<const KernelSet*> available_kernel_sets();

}  // namespace aha
