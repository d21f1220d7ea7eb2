// One thread team for everything: OpenMP's, which libtorch uses too, so that nothing is ever oversubscribed.
//
// parallel_for hands out the indices 0..n-1; which worker takes which index never changes a result, because
// every index writes only its own output. An exception of a worker is carried to the caller. Denormal numbers
// are flushed to zero in every worker (they cost 3x in Sinkhorn).
#pragma once

#include <cstdint>
#include <functional>

namespace aha {

// How many workers parallel_for uses; 0 = all cores this process may run on. Set once by the program.
void set_threads(int threads);
int threads();
int cores_present();  // counts the affinity mask, not the sockets

// Flush-to-zero and denormals-are-zero for the calling thread.
void flush_denormals();

// body(index, worker), worker in 0..threads()-1. Inside a worker it runs serially: no nesting.
void parallel_for(int64_t n, const std::function<void(int64_t index, int worker)>& body);

}  // namespace aha
