// Whoever wants to see the progress of work that runs on this thread: a server tells its clients.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace aha {

struct ProgressReport {
  std::string what, note;       // "rise"; what was done last
  int64_t done = 0, total = 0;  // total 0 = not known
};

// Called by every Progress of the calling thread, ten times a second at most and at each end, until the
// listener is gone. The innermost one listens.
class ProgressListener {
 public:
  using Listen = std::function<void(const ProgressReport&)>;
  explicit ProgressListener(Listen listen);
  ~ProgressListener();
  ProgressListener(const ProgressListener&) = delete;
  ProgressListener& operator=(const ProgressListener&) = delete;

 private:
  Listen listen_;
  ProgressListener* outer_;
  friend void tell_listener(const ProgressReport& report);
};

bool has_progress_listener();
void tell_listener(const ProgressReport& report);

}  // namespace aha
