// The kernel set of float32 vectors, for the instruction set of the file that includes it.
#pragma once

#include "aha/kernels/attention/attention_vector.h"
#include "aha/kernels/gemm/gemm_vector.h"
#include "aha/kernels/sets/panel_kernels.h"
#include "aha/kernels/weight_gradient/weight_gradient_vector.h"

namespace aha {
namespace {

constexpr KernelSet vector_kernels(std::string_view name, Isa isa) {
  KernelSet set = panel_kernels<FormF32>(name, isa);
  set.gemm = gemm_f32;
  set.attention_forward = attention_forward_f32;
  set.attention_backward = attention_backward_f32;
  set.attention_weights = attention_weights_f32;
  set.weight_gradient = weight_gradient_f32;
  set.operand_from_rows = copy_rows;
  return set;
}

}  // namespace
}  // namespace aha
