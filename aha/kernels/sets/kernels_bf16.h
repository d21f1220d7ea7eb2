// The kernel set of bf16 operands, on any Hardware that multiplies them (AMX, its model, dot products of
// pairs): GEMM and attention on it, the rest on AVX-512 panels.
#pragma once

#include "aha/kernels/attention/attention_tiles.h"
#include "aha/kernels/compose/compose_vector.h"
#include "aha/kernels/convolution/convolution_vector.h"
#include "aha/kernels/depthwise/depthwise_vector.h"
#include "aha/kernels/elementwise/elementwise_vector.h"
#include "aha/kernels/kernel_set.h"
#include "aha/kernels/layer_norm/layer_norm_vector.h"
#include "aha/kernels/rope/rope_vector.h"
#include "aha/kernels/sinkhorn/sinkhorn_loops.h"
#include "aha/kernels/swiglu/swiglu_vector.h"
#include "aha/kernels/weight_gradient/weight_gradient_tiles.h"

namespace aha {
namespace {

template <class Hardware, class Form>
constexpr KernelSet bf16_kernels(std::string_view name, Isa isa, decltype(KernelSet::gemm) gemm,
                                 const KernelSet* exact = nullptr) {
  return {.name = name,
          .isa = isa,
          .format = Form::kFormat,
          .exact = exact,
          .gemm = gemm,
          .transpose_weights = transpose_weights_vector,
          .attention_forward = attention_forward_tiles<Hardware, Form>,
          .attention_backward = attention_backward_tiles<Hardware, Form>,
          .attention_weights = attention_weights_tiles<Hardware, Form>,
          .rotate_heads = rotate_heads_panels<Form>,
          .rotate_gradient = rotate_gradient_panels<Form>,
          .swiglu = swiglu_panels<Form>,
          .swiglu_backward = swiglu_backward_panels<Form>,
          .layer_norm = layer_norm_panels<Form>,
          .layer_norm_backward = layer_norm_backward_panels<Form>,
          .depthwise = depthwise_panels<Form>,
          .depthwise_weight_gradient = depthwise_weight_gradient_panels,
          .convolution = convolution_vector,
          .gelu = gelu_vector,
          .softmax_rows = softmax_rows_vector,
          .compose = compose_panels<Form>,
          .compose_backward = compose_backward_vector,
          .weight_gradient = weight_gradient_tiles<Form>,
          .operand_from_rows = operand_from_rows_panels<Form>,
          .sinkhorn = &kSinkhornAvx512};
}

}  // namespace
}  // namespace aha
