#include "aha/nn/chunks.h"

#include <gtest/gtest.h>

#include "aha/base/parallel.h"

namespace aha {
namespace {

TEST(SumOverChunks, EveryChunkCountsOnceWhateverTheThreads) {
  constexpr int64_t kSize = 40000;  // libtorch adds so many in two threads
  for (const int threads : {1, 3}) {
    set_threads(threads);
    for (const int64_t chunks : {0, 1, 16, 17, 50}) {
      const Tensor total = sum_over_chunks(chunks, kSize, [](int64_t chunk, float* sums) {
        for (int64_t i = 0; i < kSize; ++i) sums[i] += static_cast<float>(chunk + 1 + i % 7);
      });
      const Tensor expected = chunks * (chunks + 1) / 2 + chunks * (torch::arange(kSize) % 7);
      EXPECT_TRUE(torch::equal(total, expected.to(torch::kFloat32))) << chunks << " chunks";
    }
  }
  set_threads(0);
}

}  // namespace
}  // namespace aha
