// Many small pieces of network work, each on one thread.
//
// libtorch, OpenBLAS and oneDNN cut one large operation into shares that depend on the number of threads and
// on the size of the batch, and so do the last bits of their sums. Where a result must be the same alone, in
// a batch, and for any --threads, the work is cut by us instead: piece i is computed by one thread, with
// every library told that there is only one. Pieces must not depend on each other. On a machine with c cores
// this costs nothing as soon as there are c pieces.
#pragma once

#include <cstdint>
#include <functional>

namespace aha {

// As long as it lives, libtorch, oneDNN and OpenBLAS use the calling thread only; parallel_for still has its
// team.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// piece(0), ..., piece(n - 1). An exception of a piece is thrown here. Gradient mode inside is on, whatever
// it is outside.
void one_thread_each(int64_t n, const std::function<void(int64_t)>& piece);

}  // namespace aha
