// The kernel set of float32 vectors, for the instruction set of the file that includes it.
#pragma once

#include "aha/kernels/attention/attention_vector.h"
#include "aha/kernels/compose/compose_vector.h"
#include "aha/kernels/convolution/convolution_vector.h"
#include "aha/kernels/core/transpose_vector.h"
#include "aha/kernels/depthwise/depthwise_vector.h"
#include "aha/kernels/elementwise/elementwise_vector.h"
#include "aha/kernels/gemm/gemm_vector.h"
#include "aha/kernels/kernel_set.h"
#include "aha/kernels/layer_norm/layer_norm_vector.h"
#include "aha/kernels/rope/rope_vector.h"
#include "aha/kernels/sinkhorn/sinkhorn_loops.h"
#include "aha/kernels/swiglu/swiglu_vector.h"
#include "aha/kernels/weight_gradient/weight_gradient_vector.h"

namespace aha {
namespace {

constexpr KernelSet vector_kernels(std::string_view name, Isa isa, const SinkhornLoops* sinkhorn) {
  return {.name = name,
          .isa = isa,
          .format = Format::kF32,
          .gemm = gemm_f32,
          .transpose_weights = transpose_weights_vector,
          .attention_forward = attention_forward_f32,
          .attention_backward = attention_backward_f32,
          .attention_weights = attention_weights_f32,
          .rotate_heads = rotate_heads_panels<FormF32>,
          .rotate_gradient = rotate_gradient_panels<FormF32>,
          .swiglu = swiglu_panels<FormF32>,
          .swiglu_backward = swiglu_backward_panels<FormF32>,
          .layer_norm = layer_norm_panels<FormF32>,
          .layer_norm_backward = layer_norm_backward_panels<FormF32>,
          .depthwise = depthwise_panels<FormF32>,
          .depthwise_weight_gradient = depthwise_weight_gradient_panels,
          .convolution = convolution_vector,
          .gelu = gelu_vector,
          .softmax_rows = softmax_rows_vector,
          .compose = compose_panels<FormF32>,
          .compose_backward = compose_backward_vector,
          .weight_gradient = weight_gradient_f32,
          .operand_from_rows = copy_rows,
          .sinkhorn = sinkhorn};
}

}  // namespace
}  // namespace aha
