#include "aha/base/parallel.h"

#include <omp.h>
#include <sched.h>

#include <atomic>
#include <exception>
#include <mutex>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace aha {
namespace {

std::atomic<int> g_threads{0};

// ThreadSanitizer does not see into libgomp. It is told what OpenMP promises, and nothing more: what was done
// before the team started is seen by every worker, and what a worker did is seen by who waited for the team.
inline void happens_before([[maybe_unused]] void* point) {
#if defined(__SANITIZE_THREAD__)
  __tsan_release(point);
#endif
}
inline void happens_after([[maybe_unused]] void* point) {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(point);
#endif
}

struct Team {
  int64_t n;
  const std::function<void(int64_t, int)>& body;
  // Relaxed: an order between indices would hide races between them from the sanitizer.
  std::atomic<int64_t> next = 0;
  std::exception_ptr first = nullptr;
  std::mutex first_guard = {};
  char start = 0, finish = 0;  // the two points above

  void work(int worker) {
    happens_after(&start);
    flush_denormals();
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < n;) {
      try {
        body(i, worker);
      } catch (...) {
        const std::lock_guard lock(first_guard);
        if (!first) first = std::current_exception();
        next.store(n, std::memory_order_relaxed);
      }
    }
    happens_before(&finish);
  }
};

// The compiler hands `team` to the workers in memory of its own: not to be checked.
[[gnu::no_sanitize("thread")]] void run(Team* team, int size) {
#pragma omp parallel num_threads(size)
  team->work(omp_get_thread_num());
}

}  // namespace

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
  const int size = static_cast<int>(std::min<int64_t>(threads(), n));
  if (size <= 1 || omp_in_parallel()) {
    flush_denormals();
    for (int64_t i = 0; i < n; ++i) body(i, omp_in_parallel() ? omp_get_thread_num() : 0);
    return;
  }
  Team team{n, body};
  happens_before(&team.start);
  run(&team, size);
  happens_after(&team.finish);
  if (team.first) std::rethrow_exception(team.first);
}

}  // namespace aha
