#include "aha/bench/timing.h"

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

namespace aha {
namespace {

double seconds_now(TimeKind kind) {
  timespec t;
  ::clock_gettime(kind == TimeKind::kThreadCpu ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

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
  double total = 0;
  for (int round = 0; round < repeats.least || total < repeats.seconds; ++round)
    for (size_t i = 0; i < pieces.size(); ++i) {
      context.cancel->check();
      const double start = seconds_now(kind);
      pieces[i]();
      const double took = seconds_now(kind) - start;
      total += took;
      best[i] = std::min(best[i], 1e3 * took);
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
