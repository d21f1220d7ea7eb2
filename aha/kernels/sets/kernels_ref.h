// The obvious loops, on operands of any form, with float64 sums: what every other kernel is tested against.
#pragma once

#include "aha/kernels/kernel_set.h"

namespace aha {

void gemm_ref(const GemmPart& part, const Activations& x, const PackedWeights& weights,
              const Epilogue& epilogue);
void transpose_weights_ref(const PackedWeights& from, PackedWeights& to, int64_t first, int64_t end);
void attention_forward_ref(const AttentionInput& input, const AttentionPart& part, Activations& out,
                           float* log_sum_exp);
void attention_backward_ref(const AttentionInput& input, int64_t image, int64_t head,
                            const AttentionGradient& job);
void attention_weights_ref(const AttentionInput& input, int64_t head, const AttentionWeights& job);
void rotate_heads_ref(int64_t first, int64_t end, const RopeAngles& rope, Heads& heads);
void rotate_gradient_ref(int64_t first, int64_t end, const RopeAngles& rope, const RopeGradient& job);
void swiglu_ref(int64_t first, int64_t end, const Activations& gates, Activations& out);
void swiglu_backward_ref(int64_t first, int64_t end, const Activations& gates, const Activations& dout,
                         Activations& dgates);
void layer_norm_ref(int64_t first, int64_t end, const float* x, int64_t stride, float epsilon,
                    Activations& xhat, float* rstd);
void layer_norm_backward_ref(int64_t first, int64_t end, const LayerNormGradient& job);
void depthwise_ref(int64_t first_line, int64_t lines, int64_t first, int64_t end, const DepthwiseJob& job);
void depthwise_weight_gradient_ref(int64_t images, const DepthwiseWeightGradient& job);
void convolution_ref(int64_t lines, const ConvolutionJob& job);
void gelu_ref(int64_t n, const float* x, float* y, float* derivative);
void softmax_rows_ref(int64_t rows, int64_t columns, float* x, int64_t stride, float* log_sum_exp);
void compose_ref(const PatchSource& source, const float* keep, int64_t first_row, Activations& rows);
void compose_backward_ref(const PatchSource& source, const float* gradient, int64_t stride, float* d_keep);
void weight_gradient_ref(const KernelSet& kernels, int64_t rows, const WeightGradient& job);
void operand_from_rows_ref(int64_t rows, const float* x, int64_t stride, Activations& out);

// gelu(x) and gelu'(x) of one value
struct GeluValue {
  double value, derivative;
};
GeluValue gelu_value(double x);

}  // namespace aha
