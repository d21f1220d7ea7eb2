#include "aha/api/session.h"

#include "aha/tensor/torch.h"

#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <new>

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/base/own_thread.h"
#include "aha/base/parallel.h"
#include "aha/base/startup.h"
#include "aha/image/pixel_limit.h"

namespace aha {
namespace {

constexpr auto kPollEvery = std::chrono::milliseconds(100);

// Of the whole process: who computes now. A child of fork() has none of the threads that may have held it.
std::timed_mutex& turn() {
  alignas(std::timed_mutex) static unsigned char place[sizeof(std::timed_mutex)];
  static const auto renew = [] { new (place) std::timed_mutex; };
  static const bool made = [] {
    renew();
    return ::pthread_atfork(nullptr, nullptr, +renew) == 0;
  }();
  static_cast<void>(made);
  return *std::launder(reinterpret_cast<std::timed_mutex*>(place));
}

thread_local bool t_inside = false;   // this thread is a session's
thread_local bool t_polling = false;  // a poll runs on this thread

// Said once: it is the process's, not a session's.
void warn_about_openblas() {
  static const bool warned = [] {
    set_library_environment();  // done by libaha.so; here it is remembered what the user has chosen
    const std::string core = openblas_below_cpu();
    if (!core.empty())
      spdlog::warn(
          "OpenBLAS was loaded before aha and runs its {} core, which is below this CPU: slow. Load aha "
          "before other numeric libraries, or set OPENBLAS_CORETYPE={} before the program starts",
          core, openblas_core_for_cpu());
    return true;
  }();
  static_cast<void>(warned);
}

// The threads of this process while a session computes.
class ThreadsOfCall {
 public:
  explicit ThreadsOfCall(int wanted) : openblas_(openblas_threads()) {
    set_threads(wanted);
    omp_set_num_threads(threads());  // of this thread alone; libtorch asks OpenMP
    if (openblas_ > 0) set_openblas_threads(threads());
  }
  ~ThreadsOfCall() {
    if (openblas_ > 0) set_openblas_threads(openblas_);
  }

 private:
  int openblas_;
};

}  // namespace

Fields fields(SessionOptions& o) {
  return Fields()
      .add("device", o.device, "cpu, cuda or cuda:N")
      .add("threads", o.threads, "worker threads; 0 = all cores")
      .range(0, 1024)
      .add("precision", o.precision, "f32: exact; bf16: fast where the CPU multiplies bf16")
      .choices({"f32", "bf16"})
      .add("seed", o.seed, "seed of everything random")
      .range(0, 9e15)
      .add("batch-size", o.batch_size, "images per batch; 0 = the call's own choice")
      .range(0, 65536)
      .add("quiet", o.quiet, "no remarks on stderr")
      .add("max-megapixels", o.max_megapixels, "images with more pixels are refused before they are decoded")
      .range(1e-6, 1e6);
}

Session::Session(const SessionOptions& options) : options_(options), process_(::getpid()) {
  context_.device = device_from_text(options.device);
  context_.threads = options.threads;
  context_.seed = static_cast<uint64_t>(options.seed);
  context_.precision = options.precision == "bf16" ? Precision::kBf16 : Precision::kF32;
  context_.batch_size = options.batch_size;
  context_.quiet = true;  // a library draws no progress line
  if (context_.device.cuda && !at::hasCUDA())
    throw input_error("device {}: this libtorch has no CUDA; available: cpu", options.device);
  thread_ = std::make_unique<std::thread>(own_thread([this] { serve(); }));
}

Session::~Session() {
  if (::getpid() != process_) {
    static_cast<void>(thread_.release());  // it is the parent's
    return;
  }
  {
    const std::lock_guard lock(guard_);
    over_ = true;
  }
  changed_.notify_all();
  thread_->join();
}

void Session::set_poll(std::function<bool()> poll) {
  const std::lock_guard lock(guard_);
  poll_ = std::move(poll);
}

void Session::cancel() {
  const std::lock_guard lock(guard_);
  context_.cancel->cancel();
}

void Session::run(const std::function<void(const Context&)>& work) {
  if (::getpid() != process_)
    throw work_error("this session was opened before the process forked; open one in the new process");
  if (t_inside) return work(context_);
  if (t_polling) throw input_error("a poll may cancel a call, and not make one");
  std::unique_lock one_call(callers_, std::defer_lock);
  while (!one_call.try_lock_for(kPollEvery))
    if (poll_ && poll_()) throw Error(ErrorKind::kCanceled, "stopped");
  std::unique_lock lock(guard_);
  context_.cancel = std::make_shared<CancelToken>();
  job_ = &work;
  done_ = false;
  failure_ = nullptr;
  changed_.notify_all();
  while (!changed_.wait_for(lock, kPollEvery, [&] { return done_; })) {
    const auto poll = poll_;
    if (!poll) continue;
    lock.unlock();
    t_polling = true;
    const bool stop = poll();
    t_polling = false;
    lock.lock();
    if (stop) context_.cancel->cancel();
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Session::work_once(const std::function<void(const Context&)>& work) {
  std::unique_lock lock(turn(), std::defer_lock);
  while (!lock.try_lock_for(kPollEvery)) context_.cancel->check();
  start_log(options_.quiet ? LogLevel::kQuiet : LogLevel::kNormal);
  if (!options_.quiet) warn_about_openblas();
  set_max_megapixels(options_.max_megapixels);
  const ThreadsOfCall call(context_.threads);
  work(context_);
}

void Session::serve() {
  t_inside = true;
  static_cast<void>(at::get_num_threads());  // libtorch sets a new thread's number at its first question
  flush_denormals();
  std::unique_lock lock(guard_);
  while (true) {
    changed_.wait(lock, [&] { return job_ || over_; });
    if (!job_) return;
    const auto* work = std::exchange(job_, nullptr);
    lock.unlock();
    std::exception_ptr failure;
    try {
      work_once(*work);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    failure_ = failure;
    done_ = true;
    changed_.notify_all();
  }
}

void run_apart(const std::function<void()>& work) {
  if (t_inside) return work();
  std::exception_ptr failure;
  own_thread([&] {
    t_inside = true;
    flush_denormals();
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace aha
