// The kernel set of bf16 operands, on any Hardware that multiplies them (AMX, its model, dot products of
// pairs): GEMM and attention on it, the rest on AVX-512 panels.
#pragma once

#include "aha/kernels/attention/attention_tiles.h"
#include "aha/kernels/sets/panel_kernels.h"
#include "aha/kernels/weight_gradient/weight_gradient_tiles.h"

namespace aha {
namespace {

template <class Hardware, class Form>
constexpr KernelSet bf16_kernels(std::string_view name, Isa isa, decltype(KernelSet::gemm) gemm,
                                 const KernelSet* exact = nullptr) {
  KernelSet set = panel_kernels<Form>(name, isa);
  set.exact = exact;
  set.gemm = gemm;
  set.attention_forward = attention_forward_tiles<Hardware, Form>;
  set.attention_backward = attention_backward_tiles<Hardware, Form>;
  set.attention_weights = attention_weights_tiles<Hardware, Form>;
  set.weight_gradient = weight_gradient_tiles<Form>;
  set.operand_from_rows = operand_from_rows_panels<Form>;
  return set;
}

}  // namespace
}  // namespace aha
