// What layers that are trained on the fast kernels share: plain weights, and weight gradients that do not
// depend on the number of threads.
//
// Rows go in chunks, one thread a chunk. Chunk c adds its weight gradients to partial sum c % kSums, and the
// partial sums are added in their order: neither knows how many threads there are, so that one or many give
// the same bits.
#pragma once

#include <functional>
#include <string_view>

#include "aha/tensor/tensor.h"

namespace aha {

// Rows of a chunk keep the operands of a product in the second level cache; at least so many chunks a batch
// where there is work for them, so that cores have some.
constexpr int64_t kChunkRows = 1040, kChunksWanted = 8;

// The values of a weight as contiguous float32. Input error unless it has this shape and is on the CPU.
Tensor plain_weight(const Tensor& weight, at::IntArrayRef shape, std::string_view what);

inline const float* floats(const Tensor& tensor) { return tensor.data_ptr<float>(); }

// (size): the sum over all chunks of what add(chunk, sums) adds to `size` floats, which begin as zeros.
Tensor sum_over_chunks(int64_t chunks, int64_t size,
                       const std::function<void(int64_t chunk, float* sums)>& add);

}  // namespace aha
