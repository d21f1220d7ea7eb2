#include "aha/base/shared_for.h"

#include <omp.h>
#include <sched.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "aha/base/parallel.h"

namespace aha {
namespace {

constexpr size_t kLine = 64;  // bytes of a cache line: what one thread writes and another reads has its own

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// ready() within kLookingTime.
template <class Ready>
bool seen_soon(const Ready& ready) {
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() - start < kLookingTime);
  return false;
}

// The loop that a worker shares just now. Whoever takes an index by counting `open` down may read the rest:
// it does not change before all indices are done.
struct alignas(kLine) Loop {
  std::atomic<uint32_t> open = 0;  // indices that nobody has taken
  alignas(kLine) std::atomic<uint32_t> done = 0;
  int64_t n = 0;
  const void* body = nullptr;
  detail::IndexCall call = nullptr;
  std::mutex failure_guard;
  std::exception_ptr failure;

  // One index, if there is one.
  bool take() {
    uint32_t left = open.load(std::memory_order_relaxed);
    do {
      if (left == 0) return false;
    } while (
        !open.compare_exchange_weak(left, left - 1, std::memory_order_acquire, std::memory_order_relaxed));
    try {
      call(body, n - left);
    } catch (...) {
      const std::lock_guard lock(failure_guard);
      if (!failure) failure = std::current_exception();
    }
    done.fetch_add(1, std::memory_order_release);
    return true;
  }
};

struct Crew {
  Crew(int64_t n, int size) : unfinished(n), loops(new Loop[size]), size(size) {}

  std::atomic<int64_t> next = 0;    // piece that nobody has taken
  std::atomic<int64_t> unfinished;  // pieces
  std::atomic<int> idle = 0;        // workers without a piece
  std::unique_ptr<Loop[]> loops;    // one a worker
  const int size;
  std::mutex failure_guard;
  std::exception_ptr failure;
  alignas(kLine) std::atomic<uint32_t> news = 0;  // counts loops, and the end
  std::atomic<int> asleep = 0;

  void tell() {
    news.fetch_add(1);
    if (asleep > 0) news.notify_all();
  }

  void finish_pieces(int64_t count) {
    if (unfinished.fetch_sub(count) == count) tell();
  }

  void run_pieces(int64_t n, const std::function<void(int64_t)>& body) {
    for (int64_t i; (i = next.fetch_add(1)) < n;) {
      int64_t over = 1;
      try {
        body(i);
      } catch (...) {
        over += std::max<int64_t>(0, n - next.exchange(n));
        const std::lock_guard lock(failure_guard);
        if (!failure) failure = std::current_exception();
      }
      finish_pieces(over);
    }
  }

  void help() {
    ++idle;
    while (unfinished > 0) {
      const uint32_t known = news;
      bool found = false;
      for (int i = 0; i < size; ++i)
        while (loops[i].take()) found = true;
      if (found || unfinished == 0) continue;
      if (seen_soon([&] { return news.load(std::memory_order_relaxed) != known; })) continue;
      ++asleep;
      news.wait(known);
      --asleep;
    }
    --idle;
  }
};

// What this thread is in a crew. `sharing`: inside of a shared_for, where another runs serially.
struct Membership {
  Crew* crew = nullptr;
  Loop* loop = nullptr;
  bool sharing = false;
};
thread_local Membership t_membership;

}  // namespace

void parallel_pieces(int64_t n, const std::function<void(int64_t)>& body) {
  const int size = threads();
  if (size <= 1 || n <= 0 || omp_in_parallel()) {
    flush_denormals();
    for (int64_t i = 0; i < n; ++i) body(i);
    return;
  }
  Crew crew(n, size);
  parallel_for(size, [&](int64_t role, int) {
    t_membership = {&crew, &crew.loops[role]};
    crew.run_pieces(n, body);
    t_membership.sharing = true;
    crew.help();
    t_membership = {};
  });
  if (crew.failure) std::rethrow_exception(crew.failure);
}

int helpers() {
  const Membership& me = t_membership;
  return me.crew && !me.sharing ? me.crew->idle.load(std::memory_order_relaxed) : 0;
}

void detail::shared_loop(int64_t n, const void* body, IndexCall call) {
  Membership& me = t_membership;
  Loop& loop = *me.loop;
  loop.n = n;
  loop.body = body;
  loop.call = call;
  loop.done.store(0, std::memory_order_relaxed);
  loop.open.store(static_cast<uint32_t>(n), std::memory_order_release);
  me.crew->tell();
  me.sharing = true;
  while (loop.take()) continue;
  const auto all_done = [&] { return loop.done.load(std::memory_order_acquire) == n; };
  while (!seen_soon(all_done)) ::sched_yield();
  me.sharing = false;
  if (loop.failure) std::rethrow_exception(std::exchange(loop.failure, nullptr));
}

}  // namespace aha
