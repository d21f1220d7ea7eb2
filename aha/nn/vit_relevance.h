// What is read out of a block's attention: how the class token attends, and the relevance of tokens by
// attention and gradient.
#pragma once

#include "aha/nn/vit_block.h"

namespace aha {

// (heads, T) of one image: softmax of token 0's query with all keys, from the logarithm of its sum.
void class_attention(const VitBlockState& state, int64_t image, float* out);

// row += row C of one block and image, C = relu(mean over heads of P * dlogit/dP) (Chefer et al. 2021). row
// (T) is zero but for the class tokens where these alone ask. dout: gradient of what the attention gives. The
// attention weights are computed again by `kernels`.
void add_relevance(const KernelSet& kernels, const VitBlockState& state, const Heads& dout, int64_t image,
                   float* row);

}  // namespace aha
