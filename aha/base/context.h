// What every verb gets as its last parameter: where to compute, how many threads, which seed, whom to tell,
// when to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "aha/base/progress.h"

namespace aha {

struct Device {
  bool cuda = false;
  int index = 0;
};

// "cpu", "cuda", "cuda:1"
Device device_from_text(const std::string& text);
std::string text_from_device(const Device& device);

enum class Precision {
  kF32,   // exact: within 1e-4 of libtorch's float32
  kBf16,  // fast: bf16 operands where the hardware multiplies them, float32 sums
};

// Set from a signal handler, polled between units of work.
class CancelToken {
 public:
  void cancel() { flag_ = true; }
  bool canceled() const { return flag_; }
  void check() const;  // throws Error(kCanceled)

 private:
  std::atomic<bool> flag_{false};
};

struct Context {
  Device device;
  int threads = 0;  // 0 = all cores
  uint64_t seed = 0;
  Precision precision = Precision::kF32;
  int batch_size = 0;  // 0 = the verb's own choice
  bool quiet = false;
  bool verbose = false;
  std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();

  // A bar on a terminal, nothing elsewhere.
  Progress progress(std::string what, int64_t total) const;
};

}  // namespace aha
