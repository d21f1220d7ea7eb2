#include "aha/nn/chunks.h"

#include <algorithm>
#include <array>
#include <bit>

#include "aha/base/parallel.h"

namespace aha {
namespace {

// Partial sums: a bound for memory and for the threads of the backward pass.
constexpr int64_t kSums = 16;

}  // namespace

Tensor sum_over_chunks(int64_t chunks, int64_t size,
                       const std::function<void(int64_t chunk, float* sums)>& add) {
  const int64_t partial = std::clamp<int64_t>(chunks, 1, kSums);
  std::vector<Tensor> sums(partial);
  parallel_for(partial, [&](int64_t i, int) {
    sums[i] = torch::zeros({size});
    for (int64_t c = i; c < chunks; c += partial) add(c, sums[i].data_ptr<float>());
  });
  for (int64_t i = 1; i < partial; ++i) sums[0].add_(sums[i]);
  return sums[0];
}

int64_t chunk_rows(int64_t rows, int64_t wanted) {
  const auto needed = static_cast<uint64_t>((rows + kChunkRows - 1) / kChunkRows);
  const int64_t chunks = std::max(wanted, static_cast<int64_t>(std::bit_ceil(needed)));
  return rounded_to_panel(std::max<int64_t>(1, (rows + chunks - 1) / chunks));
}

int64_t chunk_images(int64_t images, int64_t rows_of_one) {
  const int64_t most = std::clamp<int64_t>((kChunkRows + rows_of_one / 2) / rows_of_one, 1, 64);
  return std::clamp<int64_t>((images + kChunksWanted - 1) / kChunksWanted, 1, most);
}

Activations& kept_operand(OperandRole role, Format format, int64_t rows, int64_t columns) {
  constexpr size_t kKept = 4;
  static thread_local std::array<std::list<Activations>, 2> kept;
  auto& list = kept[static_cast<size_t>(role)];
  auto found = std::find_if(list.begin(), list.end(), [&](const Activations& a) {
    return a.format() == format && a.rows() >= rows && a.columns() == columns;
  });
  if (found == list.end()) {
    if (list.size() == kKept) list.pop_front();
    found = list.insert(list.end(), Activations(format, rows, columns));
  }
  return *found;
}

}  // namespace aha
