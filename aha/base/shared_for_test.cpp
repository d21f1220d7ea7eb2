#include "aha/base/shared_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "aha/base/parallel.h"

namespace aha {
namespace {

// Four workers, whatever the machine has.
class SharedFor : public ::testing::Test {
 protected:
  void SetUp() override { set_threads(4); }
  void TearDown() override { set_threads(0); }
};

// Until all other workers have nothing to do.
void wait_for_helpers(int count) {
  while (helpers() < count) std::this_thread::yield();
}

TEST_F(SharedFor, EveryIndexOfEveryLoopRunsOnce) {
  constexpr int64_t kLoops = 2000, kIndices = 37;
  std::vector<int64_t> seen(kIndices);
  parallel_pieces(1, [&](int64_t) {
    wait_for_helpers(3);
    // Plain integers: what a loop has written is there for the next one, whoever wrote it.
    for (int64_t loop = 0; loop < kLoops; ++loop) shared_for(kIndices, [&](int64_t i) { seen[i] += loop; });
  });
  for (const int64_t sum : seen) EXPECT_EQ(sum, kLoops * (kLoops - 1) / 2);
}

TEST_F(SharedFor, AWorkerWithoutAPieceTakesIndices) {
  std::mutex guard;
  std::condition_variable changed;
  int inside = 0;
  parallel_pieces(1, [&](int64_t) {
    wait_for_helpers(3);
    shared_for(4, [&](int64_t) {  // ends only where all four are inside at the same time
      std::unique_lock lock(guard);
      if (++inside == 4) changed.notify_all();
      changed.wait(lock, [&] { return inside == 4; });
    });
  });
  EXPECT_EQ(inside, 4);
}

TEST_F(SharedFor, SleepingHelpersAreWoken) {
  std::vector<int> seen(64);
  parallel_pieces(1, [&](int64_t) {
    wait_for_helpers(3);
    for (int round = 0; round < 20; ++round) {
      std::this_thread::sleep_for(10 * kLookingTime);
      shared_for(64, [&](int64_t i) { ++seen[i]; });
    }
  });
  for (const int count : seen) EXPECT_EQ(count, 20);
}

TEST_F(SharedFor, SeveralOwnersShareAtTheSameTime) {
  constexpr int64_t kPieces = 6, kIndices = 50;
  std::vector<std::vector<int>> seen(kPieces, std::vector<int>(kIndices));
  for (int round = 0; round < 50; ++round)
    parallel_pieces(kPieces, [&](int64_t piece) {
      for (int loop = 0; loop < 10; ++loop) shared_for(kIndices, [&](int64_t i) { ++seen[piece][i]; });
    });
  for (const auto& of_piece : seen)
    for (const int count : of_piece) EXPECT_EQ(count, 500);
}

TEST_F(SharedFor, OutsideOfPiecesAndInsideOfALoopItIsAPlainLoop) {
  int64_t last = -1;
  shared_for(100, [&](int64_t i) { EXPECT_EQ(i, ++last); });
  std::atomic<int> inner = 0;
  parallel_pieces(1, [&](int64_t) {
    wait_for_helpers(3);
    shared_for(8, [&](int64_t) {
      EXPECT_EQ(helpers(), 0);
      shared_for(8, [&](int64_t) { ++inner; });
    });
  });
  EXPECT_EQ(inner, 64);
}

TEST_F(SharedFor, ExceptionsOfIndicesAndOfPiecesComeToTheCaller) {
  const auto failing = [](int64_t i) {
    if (i == 13) throw std::runtime_error("index 13");
  };
  EXPECT_THROW(parallel_pieces(1,
                               [&](int64_t) {
                                 wait_for_helpers(3);
                                 EXPECT_THROW(shared_for(40, failing), std::runtime_error);
                                 int64_t all = 0;  // the loop can be used again
                                 shared_for(1, [&](int64_t i) { all += i + 1; });
                                 EXPECT_EQ(all, 1);
                                 shared_for(40, failing);
                               }),
               std::runtime_error);
  std::atomic<int> run = 0;
  EXPECT_THROW(parallel_pieces(100,
                               [&](int64_t i) {
                                 ++run;
                                 failing(i);
                               }),
               std::runtime_error);
  EXPECT_GE(run, 14);
}

TEST_F(SharedFor, RangesCoverEverythingAndBeginAtUnits) {
  parallel_pieces(1, [&](int64_t) {
    wait_for_helpers(3);
    for (const int64_t n : {0, 1, 31, 32, 33, 1000}) {
      std::vector<int> seen(n);
      shared_ranges(n, 32, 1e9, [&](int64_t first, int64_t end) {
        EXPECT_EQ(first % 32, 0);
        for (int64_t i = first; i < end; ++i) ++seen[i];
      });
      for (const int count : seen) EXPECT_EQ(count, 1) << "of " << n;
    }
  });
}

}  // namespace
}  // namespace aha
