// One queue of work for the classifiers, two workers: the first takes any job, the second only short ones, so
// that a small question is answered while a long job runs. HTTP threads only wait.
//
// A job has progress (base/progress_listener.h), can be canceled, and is canceled when it takes too long,
// when its caller has gone, and when the server stops. The last ones that ended can still be asked for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "aha/base/context.h"
#include "aha/base/error.h"
#include "aha/base/progress_listener.h"

namespace aha {

enum class JobState { kQueued, kRunning, kDone, kFailed, kCanceled };

// A job as it is at one moment.
struct JobView {
  std::string id, what;
  JobState state = JobState::kQueued;
  ProgressReport progress;
  double seconds = 0;             // running so far, or in all
  nlohmann::ordered_json result;  // where it is done
  std::string error;              // where it failed or was canceled
  int status = 200;               // of HTTP
  int64_t version = 0;            // grows with every change

  bool ended() const { return state != JobState::kQueued && state != JobState::kRunning; }
};
nlohmann::ordered_json json_from(const JobView& job);

// Thrown by JobQueue::add() where too many jobs wait.
struct QueueFull : Error {
  explicit QueueFull(int most) : Error(ErrorKind::kFailed, fmt::format("{} jobs wait already", most)) {}
};

struct JobLimits {
  int queue = 64;
  double seconds = 300;
  int kept = 256;
};

class JobQueue {
 public:
  using Work = std::function<nlohmann::ordered_json(const Context&)>;

  JobQueue(const Context& context, const JobLimits& limits);
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  // Returns the id.
  std::string add(std::string what, bool is_short, Work work);
  std::optional<JobView> view(const std::string& id) const;
  std::vector<JobView> all() const;  // newest first, without results
  bool cancel(const std::string& id);
  // Waits until the job is another one than `version`, at most so long.
  std::optional<JobView> wait(const std::string& id, int64_t version, std::chrono::milliseconds most) const;
  // Cancels everything and ends the workers.
  void stop();

 private:
  struct Job;
  void run(bool only_short);
  void watch();
  void change(Job& job, const std::function<void(JobView&)>& how);
  void forget_old();

  const Context context_;
  const JobLimits limits_;
  mutable std::mutex guard_;
  mutable std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> waiting_;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
  std::list<std::string> ended_;  // oldest first
  int64_t next_ = 1;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace aha
