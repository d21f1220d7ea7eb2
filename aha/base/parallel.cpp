#include "aha/base/parallel.h"

#include <omp.h>
#include <sched.h>

#include <atomic>
#include <exception>
#include <mutex>

namespace aha {
namespace {
std::atomic<int> g_threads{0};
}

int cores_present() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return 1;
}

void set_threads(int threads) {
  g_threads = threads;
}

int threads() {
  const int wanted = g_threads;
  return wanted > 0 ? wanted : cores_present();
}

void parallel_for(int64_t n, const std::function<void(int64_t, int)>& body) {
  const int team = static_cast<int>(std::min<int64_t>(threads(), n));
  if (team <= 1 || omp_in_parallel()) {
    flush_denormals();
    for (int64_t i = 0; i < n; ++i) body(i, omp_in_parallel() ? omp_get_thread_num() : 0);
    return;
  }
  std::exception_ptr first;
  std::mutex first_guard;
  std::atomic<int64_t> next{0};
#pragma omp parallel num_threads(team)
  {
    flush_denormals();
    for (int64_t i; (i = next.fetch_add(1)) < n;) {
      try {
        body(i, omp_get_thread_num());
      } catch (...) {
        const std::lock_guard lock(first_guard);
        if (!first) first = std::current_exception();
        next = n;
      }
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace aha
