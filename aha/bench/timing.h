// Times and memory of work on a machine that is shared with others.
//
// A time is the best of several, so that the first run, which fills caches and pools, never counts. Pieces
// that are compared run side by side, one round each, so that a busy moment of the machine meets all of them.
// Single-threaded work is timed by the CPU time of its thread, which leaves out what others took; work of a
// team by the clock on the wall. A virtual machine's CPU clock may stand still or go back by microseconds, so
// one time is that of as many calls as take a millisecond.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "aha/base/context.h"

namespace aha {

enum class TimeKind { kThreadCpu, kWall };

struct Repeats {
  double seconds = 0.3;  // of all rounds together
  int least = 3;         // rounds, whatever they take
};

// The best of each piece in milliseconds.
std::vector<double> best_ms_each(const std::vector<std::function<void()>>& pieces, TimeKind kind,
                                 const Repeats& repeats, const Context& context);
double best_ms(const std::function<void()>& work, TimeKind kind, const Repeats& repeats,
               const Context& context);

// Megabytes that `work` adds to this process's resident memory at its highest moment, counted from what is in
// use before it. To a quarter of a megabyte, which is what the kernel counts in; nothing where /proc does not
// tell.
std::optional<double> peak_mb(const std::function<void()>& work);

}  // namespace aha
