#include "aha/server/jobs.h"

#include <algorithm>
#include <exception>

#include "aha/tensor/tensor.h"

namespace aha {

using JobClock = std::chrono::steady_clock;

struct JobQueue::Job {
  JobView view;
  Work work;
  bool is_short = false;
  bool late = false;
  std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();
  JobClock::time_point start = {};
};

namespace {

const char* name_of(JobState state) {
  constexpr const char* kNames[] = {"queued", "running", "done", "failed", "canceled"};
  return kNames[static_cast<size_t>(state)];
}

double seconds_since(JobClock::time_point start) {
  return std::chrono::duration<double>(JobClock::now() - start).count();
}

int status_of(const Error& error, bool late) {
  if (late) return 504;
  switch (error.kind()) {
    case ErrorKind::kInput:
      return 400;
    case ErrorKind::kCanceled:
      return 409;
    default:
      return 500;
  }
}

}  // namespace

nlohmann::ordered_json json_from(const JobView& job) {
  nlohmann::ordered_json json = {
      {"job", job.id}, {"what", job.what}, {"state", name_of(job.state)}, {"seconds", job.seconds}};
  if (!job.progress.what.empty())
    json["progress"] = {{"what", job.progress.what},
                        {"note", job.progress.note},
                        {"done", job.progress.done},
                        {"total", job.progress.total}};
  if (!job.error.empty()) json["error"] = job.error;
  if (job.state == JobState::kDone && !job.result.is_null()) json["result"] = job.result;
  return json;
}

JobQueue::JobQueue(const Context& context, const JobLimits& limits) : context_(context), limits_(limits) {
  threads_.emplace_back([this] { run(false); });
  threads_.emplace_back([this] { run(true); });
  threads_.emplace_back([this] { watch(); });
}

JobQueue::~JobQueue() {
  stop();
}

std::string JobQueue::add(std::string what, bool is_short, Work work) {
  const std::lock_guard lock(guard_);
  if (stopping_) throw Error(ErrorKind::kCanceled, "the server is stopping");
  if (std::ssize(waiting_) >= limits_.queue) throw QueueFull(limits_.queue);
  auto job = std::make_shared<Job>();
  job->view.id = fmt::format("j{}", next_++);
  job->view.what = std::move(what);
  job->work = std::move(work);
  job->is_short = is_short;
  waiting_.push_back(job);
  jobs_[job->view.id] = job;
  changed_.notify_all();
  return job->view.id;
}

std::optional<JobView> JobQueue::view(const std::string& id) const {
  const std::lock_guard lock(guard_);
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) return std::nullopt;
  JobView view = at->second->view;
  if (view.state == JobState::kRunning) view.seconds = seconds_since(at->second->start);
  return view;
}

std::vector<JobView> JobQueue::all() const {
  const std::lock_guard lock(guard_);
  std::vector<std::pair<int64_t, JobView>> found;
  for (const auto& [id, job] : jobs_) {
    JobView view = job->view;
    view.result = nullptr;
    if (view.state == JobState::kRunning) view.seconds = seconds_since(job->start);
    found.emplace_back(std::stoll(id.substr(1)), std::move(view));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<JobView> views;
  for (auto& [number, view] : found) views.push_back(std::move(view));
  return views;
}

std::optional<JobView> JobQueue::wait(const std::string& id, int64_t version,
                                      std::chrono::milliseconds most) const {
  std::unique_lock lock(guard_);
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) return std::nullopt;
  const auto job = at->second;  // may be forgotten meanwhile
  changed_.wait_for(lock, most, [&] { return job->view.version != version || stopping_; });
  JobView view = job->view;
  if (view.state == JobState::kRunning) view.seconds = seconds_since(job->start);
  return view;
}

// The lock is held.
void JobQueue::change(Job& job, const std::function<void(JobView&)>& how) {
  how(job.view);
  ++job.view.version;
  if (job.view.ended()) {
    job.work = nullptr;
    ended_.push_back(job.view.id);
    forget_old();
  }
  changed_.notify_all();
}

void JobQueue::forget_old() {
  while (std::ssize(ended_) > limits_.kept) {
    jobs_.erase(ended_.front());
    ended_.pop_front();
  }
}

bool JobQueue::cancel(const std::string& id) {
  const std::lock_guard lock(guard_);
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) return false;
  Job& job = *at->second;
  job.cancel->cancel();
  if (job.view.state == JobState::kQueued) {
    std::erase_if(waiting_, [&](const auto& other) { return other.get() == &job; });
    const auto kept = at->second;  // forgetting may be immediate
    change(*kept, [](JobView& view) {
      view.state = JobState::kCanceled;
      view.error = "canceled";
      view.status = 409;
    });
  }
  return true;
}

void JobQueue::run(bool only_short) {
  start_compute(context_);  // threads and denormals are this thread's own
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(guard_);
      const auto next = [&] {
        return std::find_if(waiting_.begin(), waiting_.end(),
                            [&](const auto& one) { return one->is_short || !only_short; });
      };
      changed_.wait(lock, [&] { return stopping_ || next() != waiting_.end(); });
      if (stopping_) return;
      job = *next();
      waiting_.erase(next());
      job->start = JobClock::now();
      change(*job, [](JobView& view) { view.state = JobState::kRunning; });
    }
    Context context = context_;
    context.cancel = job->cancel;
    context.quiet = true;
    const ProgressListener listener([&](const ProgressReport& report) {
      const std::lock_guard lock(guard_);
      change(*job, [&](JobView& view) { view.progress = report; });
    });
    JobView end;
    try {
      context.cancel->check();
      end.result = job->work(context);
      end.state = JobState::kDone;
    } catch (const Error& error) {
      const std::lock_guard lock(guard_);
      end.state = error.kind() == ErrorKind::kCanceled ? JobState::kCanceled : JobState::kFailed;
      end.error = job->late
                      ? fmt::format("stopped after {:.0f} s, the most that a job may take", limits_.seconds)
                      : error.what();
      end.status = status_of(error, job->late);
    } catch (const std::bad_alloc&) {
      end.state = JobState::kFailed;
      end.error = "out of memory";
      end.status = 500;
    } catch (const std::exception& error) {
      end.state = JobState::kFailed;
      end.error = error.what();
      end.error.erase(std::min(end.error.find('\n'), end.error.size()));  // libtorch adds a stack trace
      end.status = 500;
    }
    const std::lock_guard lock(guard_);
    change(*job, [&](JobView& view) {
      view.state = end.state;
      view.result = std::move(end.result);
      view.error = end.error;
      view.status = end.status;
      view.seconds = seconds_since(job->start);
    });
  }
}

void JobQueue::watch() {
  std::unique_lock lock(guard_);
  while (!stopping_) {
    changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return stopping_; });
    for (const auto& [id, job] : jobs_)
      if (job->view.state == JobState::kRunning && seconds_since(job->start) > limits_.seconds &&
          !job->late) {
        job->late = true;
        job->cancel->cancel();
      }
  }
}

void JobQueue::stop() {
  {
    const std::lock_guard lock(guard_);
    stopping_ = true;
    const auto queued = std::exchange(waiting_, {});
    for (const auto& [id, job] : jobs_) job->cancel->cancel();
    for (const auto& job : queued)
      change(*job, [](JobView& view) {
        view.state = JobState::kCanceled;
        view.error = "the server is stopping";
        view.status = 503;
      });
    changed_.notify_all();
  }
  for (auto& thread : threads_)
    if (thread.joinable()) thread.join();
}

}  // namespace aha
