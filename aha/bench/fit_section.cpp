#include "aha/bench/fit_section.h"

#include <torch/nn/functional.h>

#include "aha/base/parallel.h"
#include "aha/bench/bench_network.h"
#include "aha/bench/problems.h"
#include "aha/bench/timing.h"
#include "aha/kernels/kernel_set.h"

namespace aha {
namespace {

// One step after the other on the same images.
std::function<void()> steps_of(const Learner& learner, const std::optional<Precision>& precision,
                               const Tensor& pixels, const Tensor& labels) {
  return [=] {
    learner.set_precision(precision);
    for (auto& parameter : learner.parameters) parameter.mutable_grad() = Tensor();
    torch::nn::functional::cross_entropy(learner.forward(pixels), labels).backward();
  };
}

}  // namespace

std::vector<FitRow> bench_fit(const FitBenchOptions& options, const Context& context) {
  const auto problems = problems_of("fit", 1, options.long_list);
  auto progress = context.progress("fit", static_cast<int64_t>(problems.size()));
  const bool one_precision = &best_kernel_set(Precision::kF32) == &best_kernel_set(Precision::kBf16);
  std::vector<FitRow> rows;
  for (const Problem& p : problems) {
    const auto [name, architecture] = name_and_architecture(p);
    const int64_t batch = context.batch_size > 0 ? context.batch_size : p.size(0);
    const Learner ours = make_learner(architecture), theirs = make_learner(architecture);
    const Tensor pixels = torch::rand({batch, 3, ours.size, ours.size}),
                 labels = torch::zeros({batch}, torch::kInt64);
    for (const Precision precision : {Precision::kF32, Precision::kBf16}) {
      const bool f32 = precision == Precision::kF32;
      FitRow row{name, batch, threads(), f32 ? "f32" : "bf16", std::string(best_kernel_set(precision).name),
                 0,    {}};
      if (f32 || !one_precision) {
        std::vector<std::function<void()>> pieces = {steps_of(ours, precision, pixels, labels)};
        if (options.peer) pieces.push_back(steps_of(theirs, std::nullopt, pixels, labels));
        const auto best = best_ms_each(pieces, TimeKind::kWall, {options.seconds, 3}, context);
        row.ms = best[0] / static_cast<double>(batch);
        if (options.peer) row.peer_ms = best[1] / static_cast<double>(batch);
      } else {
        row.ms = rows.back().ms;
        row.peer_ms = rows.back().peer_ms;
      }
      rows.push_back(row);
    }
    progress.advance(1, name);
  }
  return rows;
}

nlohmann::ordered_json json_from(const FitRow& r) {
  nlohmann::ordered_json json = {{"name", r.name},           {"batch", r.batch},     {"threads", r.threads},
                                 {"precision", r.precision}, {"kernels", r.kernels}, {"ms", r.ms}};
  if (r.peer_ms) json["peer"] = {{"ms", *r.peer_ms}};
  return json;
}

std::string table_from(const std::vector<FitRow>& rows) {
  std::string text =
      fmt::format("  {:<17} {:<4} {:>5} {:<14} {:>12}\n", "", "", "batch", "kernels", "ms per image");
  for (const auto& r : rows) {
    text +=
        fmt::format("  {:<17} {:<4} {:>5} {:<14} {:>12.3f}", r.name, r.precision, r.batch, r.kernels, r.ms);
    if (r.peer_ms) text += fmt::format("   eager {:.3f} ({:.2f}x)", *r.peer_ms, *r.peer_ms / r.ms);
    text += "\n";
  }
  return text;
}

}  // namespace aha
