// Work done ahead of its consumer: images are read and decoded by a few threads while the network runs on the
// batch before.
//
// make(0), make(1), ... are computed by `workers` threads, at most `ahead` results wait at any time (so
// memory is bounded whatever the number of images), and next() hands them out in order. An exception of
// make(i) is thrown by the i-th next().
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <variant>
#include <vector>

#include "aha/base/error.h"

namespace aha {

template <class T>
class Prefetch {
 public:
  Prefetch(int64_t count, int workers, int64_t ahead, std::function<T(int64_t)> make)
      : count_(count), ahead_(ahead), make_(std::move(make)) {
    try {
      for (int w = 0; w < workers; ++w) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      // Fewer threads do the same.
      if (threads_.empty()) throw work_error("cannot start a thread that reads images: {}", error.what());
    }
  }

  ~Prefetch() {
    {
      const std::lock_guard lock(guard_);
      stop_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // Nothing after the last.
  std::optional<T> next() {
    std::unique_lock lock(guard_);
    if (given_ == count_) return std::nullopt;
    changed_.wait(lock, [this] { return ready_.contains(given_); });
    auto node = ready_.extract(given_++);
    lock.unlock();
    changed_.notify_all();
    if (auto* error = std::get_if<std::exception_ptr>(&node.mapped())) std::rethrow_exception(*error);
    return std::move(std::get<T>(node.mapped()));
  }

 private:
  using Result = std::variant<T, std::exception_ptr>;

  void work() {
    for (;;) {
      int64_t index;
      {
        std::unique_lock lock(guard_);
        changed_.wait(lock, [this] { return stop_ || taken_ == count_ || taken_ < given_ + ahead_; });
        if (stop_ || taken_ == count_) return;
        index = taken_++;
      }
      std::optional<Result> result;
      try {
        result.emplace(make_(index));
      } catch (...) {
        result.emplace(std::current_exception());
      }
      {
        const std::lock_guard lock(guard_);
        ready_.emplace(index, std::move(*result));
      }
      changed_.notify_all();
    }
  }

  const int64_t count_, ahead_;
  std::function<T(int64_t)> make_;
  std::mutex guard_;
  std::condition_variable changed_;
  std::map<int64_t, Result> ready_;
  int64_t taken_ = 0, given_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace aha
