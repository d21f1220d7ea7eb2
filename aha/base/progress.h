// A progress line on stderr: what, how far, how fast, how long still. Shown only where stderr is a terminal,
// redrawn ten times a second at most.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace aha {

class Progress {
 public:
  enum class Show { kOnTerminal, kAlways, kNever };
  Progress(std::string what, int64_t total, Show show = Show::kOnTerminal);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(int64_t by = 1, const std::string& note = "");
  int64_t done() const { return done_; }
  double seconds() const;

 private:
  void draw(bool last);

  std::string what_, note_;
  int64_t total_, done_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point start_, drawn_;
};

// "3:07", "1:02:45"
std::string clock_text(double seconds);

}  // namespace aha
