#include "aha/bench/sinkhorn_section.h"

#include "aha/base/parallel.h"
#include "aha/bench/problems.h"
#include "aha/bench/timing.h"
#include "aha/kernels/sinkhorn/sinkhorn.h"
#include "aha/ranking/soft_sort.h"

namespace aha {
namespace {

constexpr int64_t kMasks = 16;
constexpr int kIterations = 30;

// One forward and backward, each time with new noise.
class Runner {
 public:
  explicit Runner(const SinkhornRow& problem) : problem_(problem) {
    torch::manual_seed(1);
    scores_ = torch::rand({1, problem.K}).set_requires_grad(true);
    ks_ = torch::tensor(perturbation_counts(problem.K, kMasks));
    mask_grad_ = torch::randn({1, kMasks, problem.K});
  }
  void operator()(const std::string& path) {
    const SoftSortOptions options{problem_.tau, kIterations, problem_.noise, path};
    const SoftMasks soft = soft_top_k(scores_, ks_, options, {step_++, 0}, Context{});
    torch::autograd::grad({soft.masks}, {scores_}, {mask_grad_});
  }
  double fused_mb(const std::string& path) const {
    const Tensor ks = ks_.to(torch::kInt32);
    std::vector<float> masks(static_cast<size_t>(kMasks * problem_.K)),
        gradient(static_cast<size_t>(problem_.K));
    const SinkhornProblem problem{{scores_.data_ptr<float>(), gradient.size()},
                                  {ks.data_ptr<int32_t>(), static_cast<size_t>(kMasks)},
                                  problem_.tau,
                                  kIterations,
                                  problem_.noise};
    SinkhornWorkspace workspace;
    sinkhorn_forward(problem, path == "dense" ? SinkhornPath::kDense : SinkhornPath::kLowRank, masks,
                     workspace);
    sinkhorn_backward(masks, gradient, workspace);
    return (static_cast<double>(workspace.bytes()) +
            4.0 * static_cast<double>(masks.size() + gradient.size())) /
           1048576;
  }

 private:
  SinkhornRow problem_;
  Tensor scores_, ks_, mask_grad_;
  uint64_t step_ = 0;
};

// The whole program on one thread as long as it lives.
class SingleThread {
 public:
  SingleThread() : team_(threads()), torch_(torch::get_num_threads()) {
    set_threads(1);
    torch::set_num_threads(1);
  }
  ~SingleThread() {
    set_threads(team_);
    torch::set_num_threads(torch_);
  }
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  int team_, torch_;
};

}  // namespace

std::vector<SinkhornRow> bench_sinkhorn(const SinkhornBenchOptions& options, const Context& context) {
  const SingleThread single;
  return rows_of("sinkhorn", 3, options.long_list, context, [&](const Problem& p) {
    SinkhornRow row;
    row.K = p.size(0);
    row.tau = p.sizes[1];
    row.noise = p.sizes[2];
    Runner run(row);
    run("reference");
    row.reference_memory_mb = peak_mb([&] { run("reference"); });
    // Without noise the low-rank path is the one that is taken.
    row.path = row.noise > 0 ? "dense" : "low-rank";
    row.memory_mb = run.fused_mb(row.path);
    // The fused path is too short to be timed once a round.
    constexpr int kTimes = 20;
    const auto best = best_ms_each({[&] { run("reference"); },
                                    [&] {
                                      for (int i = 0; i < kTimes; ++i) run(row.path);
                                    }},
                                   TimeKind::kThreadCpu, {options.seconds, 3}, context);
    row.reference_ms = best[0];
    row.ms = best[1] / kTimes;
    return row;
  });
}

nlohmann::ordered_json json_from(const SinkhornRow& r) {
  nlohmann::ordered_json json = {{"K", r.K},       {"tau", r.tau}, {"noise", r.noise},
                                 {"path", r.path}, {"ms", r.ms},   {"memory_mb", r.memory_mb}};
  json["peer"] = {{"path", "log-domain autograd"}, {"ms", r.reference_ms}};
  if (r.reference_memory_mb) json["peer"]["memory_mb"] = *r.reference_memory_mb;
  return json;
}

std::string table_from(const std::vector<SinkhornRow>& rows) {
  std::string text =
      fmt::format("  {:>4} {:>5} {:>5}  {:<9} {:>9} {:>10} {:>7} {:>9} {:>10} {:>7}\n", "K", "tau", "noise",
                  "path", "ms", "autograd", "ratio", "MB", "autograd", "ratio");
  for (const auto& r : rows) {
    text += fmt::format("  {:>4} {:>5} {:>5}  {:<9} {:>9.4f} {:>10.3f} {:>6.0f}x {:>9.3f}", r.K, r.tau,
                        r.noise, r.path, r.ms, r.reference_ms, r.reference_ms / r.ms, r.memory_mb);
    text += r.reference_memory_mb ? fmt::format(" {:>10.1f} {:>6.0f}x\n", *r.reference_memory_mb,
                                                *r.reference_memory_mb / r.memory_mb)
                                  : "\n";
  }
  return text;
}

}  // namespace aha
