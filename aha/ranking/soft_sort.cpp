#include "aha/ranking/soft_sort.h"

#include <atomic>
#include <mutex>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/kernels/sinkhorn/gumbel.h"
#include "aha/kernels/sinkhorn/sinkhorn.h"

namespace aha {
namespace {

// Workspaces are megabytes that would be mapped and unmapped at every call (a tenth of the time at K = 784).
class WorkspacePool {
 public:
  SinkhornWorkspace take() {
    const std::lock_guard lock(guard_);
    if (free_.empty()) return {};
    SinkhornWorkspace workspace = std::move(free_.back());
    free_.pop_back();
    return workspace;
  }
  void give_back(SinkhornWorkspace workspace) {
    const std::lock_guard lock(guard_);
    if (free_.size() < kMost) free_.push_back(std::move(workspace));
  }

 private:
  static constexpr size_t kMost = 16;
  std::mutex guard_;
  std::vector<SinkhornWorkspace> free_;
};

WorkspacePool& pool() {
  static auto* pool = new WorkspacePool;  // outlives every autograd graph
  return *pool;
}

// The workspaces of a batch, held by its autograd node.
struct HeldWorkspaces : torch::CustomClassHolder {
  explicit HeldWorkspaces(int64_t count) {
    for (int64_t n = 0; n < count; ++n) all.push_back(pool().take());
  }
  ~HeldWorkspaces() override {
    for (SinkhornWorkspace& workspace : all) pool().give_back(std::move(workspace));
  }
  std::vector<SinkhornWorkspace> all;
};

struct Call {
  const SoftSortOptions& options;
  SinkhornPath path;
  NoiseStream noise;
  uint64_t seed;
};

struct Report {
  Tensor residual;  // (B)
  bool dense = false, low_rank = false;
};

SinkhornPath path_from_name(const std::string& name) {
  if (name == "auto") return SinkhornPath::kAuto;
  if (name == "dense") return SinkhornPath::kDense;
  if (name == "low-rank") return SinkhornPath::kLowRank;
  const std::vector<std::string> available = {"auto", "dense", "low-rank", "reference"};
  throw unknown_name_error("Sinkhorn path", name, available);
}

uint64_t stream_of(const NoiseStream& noise, int64_t image) {
  return stream_id({noise.step, noise.first_image + image});
}

// scores (B, K) float32, ks (B, S) int32, both contiguous on the CPU -> masks (B, S, K)
Tensor fused_forward(const Tensor& scores, const Tensor& ks, const Call& call, bool keep,
                     HeldWorkspaces& held, Report& report) {
  const int64_t B = scores.size(0), K = scores.size(1), S = ks.size(1);
  Tensor masks = torch::empty({B, S, K});
  report.residual = torch::empty({B}, torch::kFloat64);
  std::atomic<bool> dense = false, low_rank = false;
  parallel_for(B, [&](int64_t b, int worker) {
    SinkhornProblem problem;
    problem.scores = {scores.data_ptr<float>() + b * K, static_cast<size_t>(K)};
    problem.ks = {ks.data_ptr<int32_t>() + b * S, static_cast<size_t>(S)};
    problem.tau = call.options.tau;
    problem.iterations = call.options.iterations;
    problem.noise = call.options.noise;
    problem.seed = call.seed;
    problem.stream = stream_of(call.noise, b);
    const SinkhornReport one = sinkhorn_forward(
        problem, call.path, {masks.data_ptr<float>() + b * S * K, static_cast<size_t>(S * K)},
        held.all[keep ? b : worker]);
    report.residual.data_ptr<double>()[b] = one.residual;
    (one.path == SinkhornPath::kDense ? dense : low_rank) = true;
  });
  report.dense = dense;
  report.low_rank = low_rank;
  return masks;
}

class FusedTopK : public torch::autograd::Function<FusedTopK> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* ctx, const Tensor& scores, const Tensor& ks,
                        const Call* call, Report* report) {
    auto held = c10::make_intrusive<HeldWorkspaces>(scores.size(0));
    Tensor masks = fused_forward(scores, ks, *call, true, *held, *report);
    ctx->saved_data["workspaces"] = c10::IValue::make_capsule(std::move(held));
    return masks;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 torch::autograd::variable_list grads) {
    const Tensor mask_grad = grads[0].contiguous();  // (B, S, K)
    const int64_t B = mask_grad.size(0), S = mask_grad.size(1), K = mask_grad.size(2);
    Tensor score_grad = torch::empty({B, K});
    auto capsule = ctx->saved_data["workspaces"].toCapsule();
    auto& held = static_cast<HeldWorkspaces&>(*capsule);
    parallel_for(B, [&](int64_t b, int) {
      sinkhorn_backward({mask_grad.data_ptr<float>() + b * S * K, static_cast<size_t>(S * K)},
                        {score_grad.data_ptr<float>() + b * K, static_cast<size_t>(K)}, held.all[b]);
    });
    return {score_grad, Tensor(), Tensor(), Tensor()};
  }
};

// (B, S) from (S) or (B, S)
Tensor ks_of_batch(const Tensor& ks, int64_t B, int64_t K) {
  if (ks.scalar_type() != torch::kInt64)
    throw input_error("ks: expected int64, found {}", c10::toString(ks.scalar_type()));
  Tensor all = ks.dim() == 1 ? ks.unsqueeze(0).expand({B, ks.size(0)}) : ks;
  check_shape(all, {B, -1}, "ks");
  if (all.numel() > 0) {
    const auto low = all.min().item<int64_t>(), high = all.max().item<int64_t>();
    if (low < 1 || high > K) throw input_error("ks: expected 1..{}, found {}..{}", K, low, high);
    if (all.size(1) > 1 && all.diff(1, 1).min().item<int64_t>() < 0)
      throw input_error("ks: expected ascending values of k");
  }
  return all;
}

}  // namespace

SoftMasks soft_top_k(const Tensor& scores, const Tensor& ks, const SoftSortOptions& options,
                     const NoiseStream& noise, const Context& context) {
  if (options.path == "reference") return soft_top_k_ref(scores, ks, options, noise, context);
  const Call call{options, path_from_name(options.path), noise, context.seed};
  check_shape(scores, {-1, -1}, "scores");
  const Tensor all_ks =
      ks_of_batch(ks, scores.size(0), scores.size(1)).to(torch::kCPU, torch::kInt32).contiguous();
  const Tensor here = scores.to(torch::kCPU, torch::kFloat32).contiguous();

  Report report;
  Tensor masks;
  if (torch::GradMode::is_enabled() && here.requires_grad()) {
    masks = FusedTopK::apply(here, all_ks, &call, &report);
  } else {
    HeldWorkspaces held(std::min<int64_t>(scores.size(0), threads()));
    masks = fused_forward(here, all_ks, call, false, held, report);
  }
  SoftMasks result;
  result.masks = masks.to(scores.device(), scores.scalar_type());
  result.residual = report.residual;
  result.iterations = options.iterations;
  result.path = report.dense && report.low_rank ? "dense and low-rank"
                : report.low_rank               ? "low-rank"
                                                : "dense";
  return result;
}

SoftMasks soft_top_k(const Tensor& scores, std::span<const int64_t> ks, const SoftSortOptions& options,
                     const NoiseStream& noise, const Context& context) {
  return soft_top_k(scores, torch::tensor(std::vector<int64_t>(ks.begin(), ks.end()), torch::kInt64), options,
                    noise, context);
}

std::vector<int64_t> ladder_steps(int64_t K, int64_t S, Rng* jitter) {
  if (K < 1 || S < 1)
    throw input_error("ladder: expected at least one region and one step, found {} and {}", K, S);
  std::vector<int64_t> steps;
  for (int64_t s = 0; s < S; ++s) {
    const double place = jitter ? jitter->uniform() : 0.5;
    steps.push_back(std::min(K, 1 + static_cast<int64_t>(K * (s + place) / S)));
  }
  return steps;
}

// ---- reference

SoftMasks soft_top_k_ref(const Tensor& scores, const Tensor& ks, const SoftSortOptions& options,
                         const NoiseStream& noise, const Context& context) {
  check_shape(scores, {-1, -1}, "scores");
  const int64_t B = scores.size(0), K = scores.size(1);
  const Tensor all_ks = ks_of_batch(ks, B, K).to(scores.device());  // (B, S)
  const Tensor positions = torch::arange(K, 0, -1, torch::kFloat64) / static_cast<double>(K);
  const Tensor p = (positions - positions.mean()).to(scores.options());  // (K)
  const Tensor a = scores - scores.mean(1, true);                        // (B, K)
  Tensor log_plan = -(a.unsqueeze(2) - p).square();                      // (B, K, K) regions x positions
  if (options.noise > 0) {
    Tensor gumbel = torch::empty({B, K, K});
    parallel_for(B, [&](int64_t b, int) {
      gumbel_rows(context.seed, stream_of(noise, b), K, 0,
                  {gumbel.data_ptr<float>() + b * K * K, static_cast<size_t>(K * K)});
    });
    log_plan = log_plan + options.noise * gumbel.to(scores.options());
  }
  log_plan = log_plan / options.tau;
  for (int t = 0; t < options.iterations; ++t) {
    log_plan = log_plan - log_plan.logsumexp(2, true);
    log_plan = log_plan - log_plan.logsumexp(1, true);
  }
  log_plan = log_plan - log_plan.logsumexp(2, true);
  const Tensor plan = log_plan.exp();
  const Tensor top = plan.cumsum(2).transpose(1, 2);  // (B, positions, regions)
  SoftMasks result;
  result.masks = top.gather(1, (all_ks - 1).unsqueeze(2).expand({B, all_ks.size(1), K}));
  result.residual = (plan.detach().sum(1) - 1).abs().amax(1).to(torch::kCPU, torch::kFloat64);
  result.iterations = options.iterations;
  result.path = "reference";
  return result;
}

}  // namespace aha
