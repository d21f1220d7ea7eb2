// Weights of a TensorFlow.js layers model: model.json, whose "weightsManifest" lists groups of tensors, and
// the shards that hold each group's bytes, little-endian, one tensor behind the other.
//
// Float32 only, without quantization. Shapes are as Keras has them: kernels of convolutions (H, W, I, O), of
// dense layers (I, O).
#pragma once

#include "aha/weights/tensor_table.h"

namespace aha {

// FOLDER/model.json and the shards beside it.
TensorTable read_tfjs(const std::string& folder);

}  // namespace aha
