// One long piece of work on several threads: its short loops are shared with workers that have no piece.
//
// parallel_for would give one image to one worker and leave the others idle. parallel_pieces() hands out
// pieces as parallel_for does, and a worker that finds none left helps where others still work: the indices
// of their shared_for() loops go to whoever takes them first. As in parallel_for, every index writes only its
// own output, so that the numbers do not depend on who was there.
//
// A helper waits for the next loop by looking for kLookingTime, then sleeps until it is woken: loops follow
// each other within microseconds, and waking a thread takes tens of them. The owner of a loop never waits for
// a helper that has not come, only for indices that one has taken.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

namespace aha {

constexpr std::chrono::microseconds kLookingTime{50};

// body(0), ..., body(n - 1) on the team of parallel_for. Inside a worker it runs serially. An exception of a
// piece is thrown here.
void parallel_pieces(int64_t n, const std::function<void(int64_t piece)>& body);

// Workers that would help now: 0 outside of parallel_pieces, inside of another shared_for, and where every
// worker has a piece.
int helpers();

namespace detail {
using IndexCall = void (*)(const void* body, int64_t index);
void shared_loop(int64_t n, const void* body, IndexCall call);
}  // namespace detail

// body(0), ..., body(n - 1), n below 2^31. An exception is thrown to the caller once nobody works on it any
// more.
template <class Body>
void shared_for(int64_t n, const Body& body) {
  if (n > 1 && helpers() > 0)
    return detail::shared_loop(n, &body,
                               [](const void* of, int64_t index) { (*static_cast<const Body*>(of))(index); });
  for (int64_t i = 0; i < n; ++i) body(i);
}

// Ranges worth to be shared: an index takes at least so many operations (a few microseconds), and a worker
// some indices, so that one who is held up by another program is not waited for long.
constexpr double kWorthSharing = 4e5;
constexpr int64_t kSharesOfAWorker = 4;

// body(first, end) on consecutive ranges of 0..n-1 that begin at multiples of `unit`; `operations` all
// together.
template <class Body>
void shared_ranges(int64_t n, int64_t unit, double operations, const Body& body) {
  const int64_t units = (n + unit - 1) / unit, workers = helpers() + 1;
  const auto worth = static_cast<int64_t>(operations / kWorthSharing);
  const int64_t ranges = workers == 1 ? 1 : std::min({units, workers * kSharesOfAWorker, worth});
  if (ranges <= 1) return body(int64_t{0}, n);
  shared_for(ranges, [&](int64_t i) {
    body(units * i / ranges * unit, std::min(n, units * (i + 1) / ranges * unit));
  });
}

}  // namespace aha
