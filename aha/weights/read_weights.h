// Reads any weight file this program knows: safetensors, PyTorch zip or legacy pickle, ONNX Runtime's own;
// told apart by content. Tensors are views into the mapped file where its layout allows it.
#pragma once

#include "aha/weights/tensor_table.h"

namespace aha {

TensorTable read_weights(const std::string& path);

}  // namespace aha
