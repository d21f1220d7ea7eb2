#include "aha/kernels/kernel_set.h"

#include "aha/base/log.h"
#include "aha/kernels/kernel_list.h"
#include "aha/kernels/sets/kernels_ref.h"
#include "aha/kernels/sinkhorn/sinkhorn_loops.h"

namespace aha {
namespace {

constexpr KernelSet reference_set(std::string_view name, Format format) {
  return {.name = name,
          .isa = Isa::kReference,
          .format = format,
          .gemm = gemm_ref,
          .transpose_weights = transpose_weights_ref,
          .attention_forward = attention_forward_ref,
          .attention_backward = attention_backward_ref,
          .attention_weights = attention_weights_ref,
          .rotate_heads = rotate_heads_ref,
          .rotate_gradient = rotate_gradient_ref,
          .swiglu = swiglu_ref,
          .swiglu_backward = swiglu_backward_ref,
          .layer_norm = layer_norm_ref,
          .layer_norm_backward = layer_norm_backward_ref,
          .depthwise = depthwise_ref,
          .depthwise_weight_gradient = depthwise_weight_gradient_ref,
          .convolution = convolution_ref,
          .gelu = gelu_ref,
          .softmax_rows = softmax_rows_ref,
          .compose = compose_ref,
          .compose_backward = compose_backward_ref,
          .weight_gradient = weight_gradient_ref,
          .operand_from_rows = operand_from_rows_ref,
          .sinkhorn = &kSinkhornPortable};
}

constexpr KernelSet kReference[] = {reference_set("reference f32", Format::kF32),
                                    reference_set("reference bf16", Format::kBf16),
                                    reference_set("reference bf16 pair", Format::kBf16Pair)};

// Best first. A set serves a precision if its GEMMs are at least that exact.
struct Entry {
  const KernelSet* kernels;
  bool serves_f32, serves_bf16;
};
constexpr Entry kPriority[] = {
    {&kAmxBf16Kernels, false, true}, {&kAmxExactKernels, true, false}, {&kAvx512Bf16Kernels, false, true},
    {&kAvx512Kernels, true, true},   {&kAvx2Kernels, true, true},      {&kReference[0], true, true},
};

}  // namespace

const KernelSet& kernel_set(Isa isa, Precision precision) {
  for (const Entry& entry : kPriority)
    if (entry.kernels->isa <= isa && (precision == Precision::kF32 ? entry.serves_f32 : entry.serves_bf16))
      return *entry.kernels;
  return kReference[0];
}

const KernelSet& best_kernel_set(Precision precision) {
  const KernelSet& kernels = kernel_set(best_isa(), precision);
  static const bool logged = (spdlog::debug("kernels: {}, on {}", kernels.name, describe_cpu()), true);
  (void)logged;
  return kernels;
}

const KernelSet& reference_kernels(Format format) {
  return kReference[static_cast<int>(format)];
}

std::vector<const KernelSet*> available_kernel_sets() {
  std::vector<const KernelSet*> sets;
  for (const Entry& entry : kPriority)
    if (entry.kernels->isa <= present_isa().isa) sets.push_back(entry.kernels);
  return sets;
}

}  // namespace aha
