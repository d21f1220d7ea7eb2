#include "aha/bench/timing.h"

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "aha/base/startup.h"

namespace aha {
namespace {

double seconds_now(TimeKind kind) {
  timespec t;
  ::clock_gettime(kind == TimeKind::kThreadCpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

constexpr std::chrono::milliseconds kUntilThreadsSleep{40};
constexpr double kShortest = 1e-3;  // seconds; what the CPU clock is off by is a thousandth of it and less

std::optional<double> status_mb(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::atof(line.c_str() + field.size() + 1) / 1024;
  return std::nullopt;
}

}  // namespace

std::vector<double> best_ms_each(const std::vector<std::function<void()>>& pieces, TimeKind kind,
                                 const Repeats& repeats, const Context& context) {
  std::vector<double> best(pieces.size(), std::numeric_limits<double>::infinity());
  std::vector<int64_t> calls(pieces.size(), 1);  // that make one time
  double total = 0;
  for (int round = 0; round < repeats.least || total < repeats.seconds; ++round)
    for (size_t i = 0; i < pieces.size(); ++i) {
      // Idle threads of OpenBLAS look for work for 2^26 cycles; those of one piece must not slow the next.
      if (pieces.size() > 1 && kind == TimeKind::kWall && openblas_threads() > 1) {
        std::this_thread::sleep_for(kUntilThreadsSleep);
        total += std::chrono::duration<double>(kUntilThreadsSleep).count();
      }
      double took = 0, on_the_wall = 0;
      for (;; calls[i] *= 2) {
        context.cancel->check();
        const double start = seconds_now(kind), wall = seconds_now(TimeKind::kWall);
        for (int64_t call = 0; call < calls[i]; ++call) pieces[i]();
        took = seconds_now(kind) - start;
        on_the_wall = seconds_now(TimeKind::kWall) - wall;
        if (on_the_wall >= kShortest && took > 0) break;
      }
      total += on_the_wall;
      best[i] = std::min(best[i], 1e3 * took / static_cast<double>(calls[i]));
    }
  return best;
}

double best_ms(const std::function<void()>& work, TimeKind kind, const Repeats& repeats,
               const Context& context) {
  return best_ms_each({work}, kind, repeats, context).front();
}

std::optional<double> peak_mb(const std::function<void()>& work) {
  ::malloc_trim(0);  // freed memory that is used again would not be seen
  std::ofstream reset("/proc/self/clear_refs");
  reset << "5" << std::flush;  // the high-water mark starts again
  const auto before = reset ? status_mb("VmRSS") : std::nullopt;
  work();
  const auto after = status_mb("VmHWM");
  if (!before || !after) return std::nullopt;
  return std::max(0.0, *after - *before);
}

}  // namespace aha
