// Where the time of a command goes, for --verbose: seconds by the clock on the wall, added up by name.
//
// A part may run beside others (decoding does), so that all together may be more than the whole.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "aha/base/timer.h"

namespace aha {

void add_time_spent(const std::string& on, double seconds);
std::vector<std::pair<std::string, double>> times_spent();  // in the order of their first end

// Adds the time until it goes.
class TimeSpent {
 public:
  explicit TimeSpent(std::string on) : on_(std::move(on)) {}
  ~TimeSpent() { add_time_spent(on_, timer_.seconds()); }
  TimeSpent(const TimeSpent&) = delete;
  TimeSpent& operator=(const TimeSpent&) = delete;

 private:
  std::string on_;
  Timer timer_;
};

}  // namespace aha
