// sinkhorn_bench: the fused soft top-k masks against the plain log-domain version under libtorch's autograd,
// both float32 on one thread in the same run; one image, 16 masks, 30 iterations, forward and backward, noise
// included where there is any.
//
// Times are CPU times, the best of several: machines are shared. Memory is what one forward and backward adds
// to the resident set at its peak (VmHWM after minus VmRSS before), each measured in a process of its own
// that has warmed up on a small problem.
#include <stdio.h>
#include <time.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/startup.h"
#include "aha/ranking/soft_sort.h"

namespace aha {
namespace {

struct Problem {
  int64_t K;
  double tau, noise;
  const char* wanted;  // the ratios that were asked for
};

constexpr Problem kProblems[] = {
    {49, 1, 1, ""},
    {49, 1, 0, ""},
    {196, 1, 1, "time >= 20, memory >= 30"},
    {196, 1, 0, ""},
    {784, 1, 1, "time >= 20, memory >= 30"},
    {784, 0.1, 1, "time >= 20, memory >= 30"},
    {784, 1, 0, "time >= 100"},
    {784, 0.1, 0, "time >= 100"},
};
const std::vector<std::string> kPaths = {"reference", "dense", "low-rank"};

double cpu_ms() {
  timespec t;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

int64_t resident_kb(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::atoll(line.c_str() + std::strlen(field) + 1);
  return 0;
}

class Runner {
 public:
  explicit Runner(const Problem& problem) : problem_(problem) {
    torch::manual_seed(1);
    scores_ = torch::rand({1, problem.K}).set_requires_grad(true);
    ks_ = torch::tensor(ladder_steps(problem.K, 16));
    mask_grad_ = torch::randn({1, 16, problem.K});
  }
  void operator()(const std::string& path) {
    const SoftSortOptions options{problem_.tau, 30, problem_.noise, path};
    const SoftMasks soft = soft_top_k(scores_, ks_, options, {step_++, 0}, Context{});
    torch::autograd::grad({soft.masks}, {scores_}, {mask_grad_});
  }

 private:
  Problem problem_;
  Tensor scores_, ks_, mask_grad_;
  uint64_t step_ = 0;
};

double best_ms(const Problem& problem, const std::string& path) {
  Runner run(problem);
  run(path);
  double fastest = 1e9, total = 0;
  for (int n = 0; n < 5 || total < 400; ++n) {
    const double start = cpu_ms();
    run(path);
    const double took = cpu_ms() - start;
    fastest = std::min(fastest, took);
    total += took;
  }
  return fastest;
}

// In a process of its own: prints kB.
void measure_memory(int problem, const std::string& path) {
  Runner(Problem{16, 1, kProblems[problem].noise, ""})(path == "low-rank" ? "dense" : path);
  Runner run(kProblems[problem]);
  std::ofstream("/proc/self/clear_refs") << "5";  // VmHWM starts again
  const int64_t before = resident_kb("VmRSS:");
  run(path);
  fmt::print("{}\n", resident_kb("VmHWM:") - before);
}

double memory_mb(const std::string& program, int problem, const std::string& path) {
  FILE* child = ::popen(fmt::format("'{}' memory {} {}", program, problem, path).c_str(), "r");
  if (!child) throw work_error("cannot start {}", program);
  long long kb = 0;
  const int read = std::fscanf(child, "%lld", &kb);
  if (::pclose(child) != 0 || read != 1) throw work_error("{} did not measure its memory", program);
  return static_cast<double>(kb) / 1024;
}

void compare(const std::string& program) {
  fmt::print("{:>4} {:>5} {:>5}  {:<9} {:>10} {:>7} {:>10} {:>7}  {}\n", "K", "tau", "noise", "path", "ms",
             "ratio", "MB", "ratio", "asked for");
  for (int n = 0; n < static_cast<int>(std::size(kProblems)); ++n) {
    const Problem& problem = kProblems[n];
    double reference_ms = 0, reference_mb = 0;
    for (const std::string& path : kPaths) {
      if (path == "low-rank" && problem.noise > 0) continue;
      const double ms = best_ms(problem, path), mb = memory_mb(program, n, path);
      if (path == "reference") reference_ms = ms, reference_mb = mb;
      const bool judged = path == (problem.noise > 0 ? "dense" : "low-rank");
      fmt::print("{:>4} {:>5} {:>5}  {:<9} {:>10.4f} {:>7.1f} {:>10.3f} {:>7.1f}  {}\n", problem.K,
                 problem.tau, problem.noise, path, ms, reference_ms / ms, mb, reference_mb / mb,
                 judged ? problem.wanted : "");
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace aha

int main(int argc, char** argv) {
  aha::prepare_process(argv);
  aha::set_threads(1);
  torch::set_num_threads(1);
  at::globalContext().setFlushDenormal(true);
  try {
    if (argc == 4 && std::strcmp(argv[1], "memory") == 0)
      aha::measure_memory(std::atoi(argv[2]), argv[3]);
    else
      aha::compare(argv[0]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sinkhorn_bench: {}\n", error.what());
    return 1;
  }
}
