// What layers that are trained on the fast kernels share: plain weights, memory that is kept from step to step, and
// weight gradients that do not depend on the number of threads.
//
// Rows go in chunks, one thread a chunk. Chunk c adds its weight gradients to partial sum c % kSums, and the
// partial sums are added in their order: neither knows how many threads there are, so that one or many give
// the same bits.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "aha/kernels/core/activations.h"
#include "aha/tensor/tensor.h"

namespace aha {

// Rows of a chunk keep the operands of a product in the second level cache; at least so many chunks a batch
// where there is work for them, so that cores have some.
constexpr int64_t kChunkRows = 1040, kChunksWanted = 8;

// Rows of a chunk where at least `wanted` chunks are: a power of two of chunks, so that two or four threads have the same work;
// whole strips of rows, so that no tile is in two chunks.
int64_t chunk_rows(int64_t rows, int64_t wanted);

// Images of a chunk, where one image is so many rows.
int64_t chunk_images(int64_t images, int64_t rows_of_one);

// The values of a weight as contiguous float32. Input error unless it has this shape and is on the CPU.
Tensor plain_weight(const Tensor& weight, at::IntArrayRef shape, std::string_view what);

// The same of all weights of a layer, in the order of their shapes; fewer weights than shapes are allowed.
std::vector<Tensor> plain_weights(at::TensorList weights, const std::vector<std::vector<int64_t>>& shapes, std::string_view layer);

inline const float* floats(const Tensor& tensor) { return tensor.data_ptr<float>(); }

// (size): the sum over all chunks of what add(chunk, sums) adds to `size` floats, which begin as zeros.
Tensor sum_over_chunks(int64_t chunks, int64_t size,
                       const std::function<void(int64_t chunk, float* sums)>& add);

// An operand of a product in the form of the kernels, with room for `rows`. Each thread keeps a few a role: a network asks for
// the same shapes again and again, and fresh memory costs more than filling it. Columns behind `columns` are zeros.
enum class OperandRole { kInput, kGradient };
Activations& kept_operand(OperandRole role, Format format, int64_t rows, int64_t columns);

// What chunks leave for the way back, kept from step to step: a network asks for the same sizes at every step, and fresh
// memory costs more than filling it.
template <class Chunk>
class ChunkPool {
 public:
  // One that fits, or null: the others are of another size then, will not be asked for again soon, and go.
  template <class Fits>
  std::unique_ptr<Chunk> take(const Fits& fits) {
    const std::lock_guard lock(guard_);
    for (auto& held : kept_)
      if (fits(*held)) {
        std::swap(held, kept_.back());
        auto out = std::move(kept_.back());
        kept_.pop_back();
        return out;
      }
    kept_.clear();
    return nullptr;
  }
  void give_back(std::unique_ptr<Chunk> chunk) {
    const std::lock_guard lock(guard_);
    kept_.push_back(std::move(chunk));
  }

 private:
  std::mutex guard_;
  std::vector<std::unique_ptr<Chunk>> kept_;
};

}  // namespace aha
