// What the kernel sets of float32 vectors and of bf16 operands share: all that works on panels in any form.
#pragma once

#include "aha/kernels/compose/compose_vector.h"
#include "aha/kernels/convolution/convolution_vector.h"
#include "aha/kernels/core/transpose_vector.h"
#include "aha/kernels/depthwise/depthwise_vector.h"
#include "aha/kernels/elementwise/elementwise_vector.h"
#include "aha/kernels/kernel_set.h"
#include "aha/kernels/layer_norm/layer_norm_vector.h"
#include "aha/kernels/rope/rope_vector.h"
#include "aha/kernels/sinkhorn/sinkhorn_loops.h"
#include "aha/kernels/swiglu/swiglu_vector.h"

namespace aha {
namespace {

template <class Form>
constexpr KernelSet panel_kernels(std::string_view name, Isa isa) {
  return {.name = name,
          .isa = isa,
          .format = Form::kFormat,
          .transpose_weights = transpose_weights_vector,
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
          .sinkhorn = kLanes == 16 ? &kSinkhornAvx512 : &kSinkhornAvx2};
}

}  // namespace
}  // namespace aha
