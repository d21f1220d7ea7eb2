// Chains of nodes that exporters write for one layer, put together again: LayerNorm, GELU, SiLU, and a matrix
// product with its bias. Each number then goes through memory once instead of up to nine times.
//
//   LayerNorm   d = x - mean(x);  d / sqrt(mean(d^2) + eps) * w + b, over the last axis
//   GELU        x * (erf(x / sqrt(2)) + 1) * 0.5, its factors in any order
//   SiLU        x * sigmoid(x)
//   linear      x W + b, W a constant matrix
//
// Measured with one thread beside frozen TorchScript of the same network (96 pixels, opset 14; CPU seconds
// for 96 masks of rise, then for 48 steps of ig): ConvNeXt-Tiny 1.94 and 3.70 as it was written out, 1.13
// and 2.29 so, TorchScript 1.15 and 2.32; ResNet-50, which has none of these, 1.20 and 2.16, TorchScript 1.20
// and 2.17.
#pragma once

#include "aha/onnx/operators.h"

namespace aha {

// The last node of a chain computes all of it; the others stay and are needed by nobody.
void fuse_layers(OnnxGraph& graph, const std::map<int, Tensor>& constants);

// Operators that only fused nodes have; null for other names.
const OnnxOperator* fused_operator(const std::string& name);

}  // namespace aha
