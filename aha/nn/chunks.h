// Rows or images in chunks, one thread per chunk: how large they are, memory for them that is kept from step
// to step, and weight gradients that do not depend on the number of threads.
//
// Chunk c adds its weight gradients to partial sum c % kSums, and the partial sums are added in their order:
// neither knows how many threads there are, so that one or many give the same bits.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "aha/kernels/core/activations.h"
#include "aha/tensor/tensor.h"

namespace aha {

// Rows of a chunk keep the operands of a GEMM in the second level cache; at least so many chunks a batch
// where there is work for them, so that cores have some.
constexpr int64_t kChunkRows = 1040, kChunksWanted = 8;

// Rows of a chunk where at least `wanted` chunks are: a power of two of chunks, so that two or four threads
// have the same work; whole panels of rows, so that no tile is in two chunks.
int64_t chunk_rows(int64_t rows, int64_t wanted);

// Images of a chunk, where one image is so many rows.
int64_t chunk_images(int64_t images, int64_t rows_of_one);

// (size): the sum over all chunks of what add(chunk, sums) adds to `size` floats, which begin as zeros.
Tensor sum_over_chunks(int64_t chunks, int64_t size,
                       const std::function<void(int64_t chunk, float* sums)>& add);

// An operand of a GEMM in the form of the kernels, with room for `rows`. Each thread keeps a few per role: a
// network asks for the same shapes again and again, and fresh memory costs more than filling it. Columns
// behind `columns` are zeros.
enum class OperandRole { kInput, kGradient };
Activations& kept_operand(OperandRole role, Format format, int64_t rows, int64_t columns);

// What chunks need, kept from call to call: a network asks for the same sizes again and again, and fresh
// memory costs more than filling it. A chunk that was taken goes back by itself.
template <class Chunk>
class ChunkPool : public std::enable_shared_from_this<ChunkPool<Chunk>> {
 public:
  struct GiveBack {
    std::shared_ptr<ChunkPool> pool;
    void operator()(Chunk* chunk) const {
      const std::lock_guard lock(pool->guard_);
      pool->kept_.emplace_back(chunk);
    }
  };
  using Taken = std::unique_ptr<Chunk, GiveBack>;

  // One that fits, or what make() gives, a unique_ptr: the others are of another size then, will not be asked
  // for again soon, and go.
  template <class Fits, class Make>
  Taken take(const Fits& fits, const Make& make) {
    {
      const std::lock_guard lock(guard_);
      for (auto& held : kept_)
        if (fits(*held)) {
          std::swap(held, kept_.back());
          Taken out(kept_.back().release(), GiveBack{this->shared_from_this()});
          kept_.pop_back();
          return out;
        }
      kept_.clear();
    }
    return Taken(make().release(), GiveBack{this->shared_from_this()});
  }

 private:
  std::mutex guard_;
  std::vector<std::unique_ptr<Chunk>> kept_;
};

// Scratch of this thread: one value a key, the last `most` of them kept.
template <class Value, class Key, class Make>
Value& kept_by_thread(const Key& key, size_t most, const Make& make) {
  static thread_local std::list<std::pair<Key, Value>> kept;
  for (auto& [held, value] : kept)
    if (held == key) return value;
  if (kept.size() == most) kept.pop_front();
  return kept.emplace_back(key, make()).second;
}

}  // namespace aha
