#include "aha/base/time_spent.h"

#include <algorithm>
#include <mutex>

namespace aha {
namespace {

std::mutex g_guard;
std::vector<std::pair<std::string, double>> g_parts;

}  // namespace

void add_time_spent(const std::string& on, double seconds) {
  const std::lock_guard lock(g_guard);
  const auto found = std::ranges::find(g_parts, on, &std::pair<std::string, double>::first);
  if (found == g_parts.end())
    g_parts.emplace_back(on, seconds);
  else
    found->second += seconds;
}

std::vector<std::pair<std::string, double>> times_spent() {
  const std::lock_guard lock(g_guard);
  return g_parts;
}

}  // namespace aha
