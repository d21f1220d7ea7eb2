// The library inside somebody else's program: calls run on a thread of the session's own.
//
// OpenMP's team, its number of threads and the floating-point mode all belong to the thread that computes. As
// that is never the caller's, nothing of the caller's changes. What belongs to the process (the threads of
// OpenBLAS, those of parallel_for) is set for each call and set back; calls of all sessions therefore take
// turns.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "aha/base/context.h"
#include "aha/base/options.h"

namespace aha {

struct SessionOptions {
  std::string device = "cpu";
  int threads = 0;
  std::string precision = "f32";
  int64_t seed = 0;
  int batch_size = 0;
  bool quiet = false;
  double max_megapixels = 100;
};
Fields fields(SessionOptions& options);

class Session {
 public:
  explicit Session(const SessionOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Runs the work on the session's thread and waits for it; what it throws is thrown here. From inside such
  // work (a callback that calls back) it runs at once. Work error in a process that was forked off the
  // session's: its threads are not there.
  void run(const std::function<void(const Context&)>& work);

  void cancel();
  // See aha_poll().
  void set_poll(std::function<bool()> poll);

 private:
  void serve();
  void work_once(const std::function<void(const Context&)>& work);

  SessionOptions options_;
  Context context_;
  std::function<bool()> poll_;
  long process_;
  std::timed_mutex callers_;  // one call at a time
  std::mutex guard_;          // of what follows, and of context_.cancel
  std::condition_variable changed_;
  const std::function<void(const Context&)>* job_ = nullptr;
  std::exception_ptr failure_;
  bool done_ = false, over_ = false;
  std::unique_ptr<std::thread> thread_;
};

// The same for work that belongs to no session: on a thread that lives as long as the work.
void run_apart(const std::function<void()>& work);

}  // namespace aha
