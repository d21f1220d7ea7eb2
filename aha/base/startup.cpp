#include "aha/base/startup.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <climits>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <thread>

#include "aha/base/parallel.h"

namespace aha {
namespace {

constexpr const char* kAgain = "AHA_STARTED_AGAIN";
constexpr const char* kSet =
    "AHA_HAS_SET";  // names the variables that a launcher or an earlier start of ours has set

bool has_avx512() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

bool has_avx2() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool tuning_is_off() {
  const char* override = std::getenv("AHA_TUNING");
  return override && std::string(override) == "off";
}

std::vector<TuningChoice>& choices() {
  static std::vector<TuningChoice> list;
  return list;
}

void choose(const char* variable, const char* value, std::string why) {
  const char* set = std::getenv(variable);
  const char* ours = std::getenv(kSet);
  if (set && !(ours && std::string(ours).find(variable) != std::string::npos)) {
    choices().push_back({variable, set, "set by the user", true});
    return;
  }
  if (!set) {
    ::setenv(variable, value, 1);
    ::setenv(kSet, (std::string(ours ? ours : "") + " " + variable).c_str(), 1);
  }
  choices().push_back({variable, set ? set : value, std::move(why), false});
}

}  // namespace

std::vector<TuningChoice> set_library_environment() {
  if (!choices().empty() || tuning_is_off()) return choices();
  if (const std::string core = openblas_core_for_cpu(); !core.empty())
    choose("OPENBLAS_CORETYPE", core.c_str(),
           std::string("this CPU has ") + (has_avx512() ? "AVX-512" : "AVX2") +
               "; OpenBLAS would fall back to SSE3 on models it does not know");
  if (has_avx512())
    choose("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16",
           "oneDNN 2.6's tile path dies on virtual machines that hide CPUID leaf 0x1D");
  choose("OMP_WAIT_POLICY", "PASSIVE", "idle threads that spin take the time of those that work");
  return choices();
}

const std::vector<TuningChoice>& library_choices() {
  return choices();
}

void keep_freed_memory() {
  if (tuning_is_off()) return;
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
  ::mallopt(M_TOP_PAD, 64 << 20);
}

bool may_map(size_t bytes) {
  void* at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at != MAP_FAILED && ::munmap(at, bytes) == 0;
}

bool may_start_threads(int threads) {
  std::mutex guard;
  std::condition_variable changed;
  bool over = false, all = true;
  std::vector<std::thread> started;
  try {
    while (std::ssize(started) < threads)
      started.emplace_back([&] {
        std::unique_lock lock(guard);
        changed.wait(lock, [&] { return over; });
      });
  } catch (const std::system_error&) {
    all = false;
  }
  {
    const std::lock_guard lock(guard);
    over = true;
  }
  changed.notify_all();
  for (auto& thread : started) thread.join();
  return all;
}

bool reserve_openblas_buffers(int threads) {
  const auto limited = [](auto what) {
    rlimit limit{};
    return ::getrlimit(what, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  };
  if (!limited(RLIMIT_AS) && !limited(RLIMIT_DATA)) return true;
  using Alloc = void* (*)(int);
  using Free = void (*)(void*);
  const auto alloc = reinterpret_cast<Alloc>(::dlsym(RTLD_DEFAULT, "blas_memory_alloc"));
  const auto free = reinterpret_cast<Free>(::dlsym(RTLD_DEFAULT, "blas_memory_free"));
  if (!alloc || !free) return true;
  if (!may_map(static_cast<size_t>(threads) * kOpenblasBuffer)) return false;
  std::vector<void*> buffers;
  for (int i = 0; i < threads; ++i) buffers.push_back(alloc(0));
  for (void* buffer : buffers) free(buffer);  // stays mapped, for whoever multiplies next
  return true;
}

void set_openblas_threads(int threads) {
  using SetThreads = void (*)(int);
  if (const auto set = reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads")))
    set(threads);
}

int openblas_threads() {
  using Threads = int (*)();
  const auto count = reinterpret_cast<Threads>(::dlsym(RTLD_DEFAULT, "openblas_get_num_threads"));
  return count ? count() : 0;
}

std::string openblas_core() {
  using CoreName = char* (*)();
  const auto name = reinterpret_cast<CoreName>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return name ? name() : "";
}

std::string openblas_core_for_cpu() {
  return has_avx512() ? "SKYLAKEX" : has_avx2() ? "HASWELL" : "";
}

std::string openblas_below_cpu() {
  for (const auto& choice : choices())
    if (choice.by_user && choice.variable == "OPENBLAS_CORETYPE") return "";
  const std::string core = openblas_core();
  const bool below = (has_avx512() && core != "SkylakeX" && core != "Cooperlake" &&
                      core != "Sapphirerapids" && core != "Zen") ||
                     (has_avx2() && (core == "Prescott" || core == "Nehalem" || core == "Core2"));
  return below && !tuning_is_off() ? core : "";
}

void prepare_process(char** argv) {
  set_library_environment();
  keep_freed_memory();
  flush_denormals();
  if (openblas_below_cpu().empty() || std::getenv(kAgain)) return;
  ::setenv(kAgain, "1", 1);
  ::execv("/proc/self/exe", argv);
}

}  // namespace aha
