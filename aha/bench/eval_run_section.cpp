#include "aha/bench/eval_run_section.h"

#include "aha/base/parallel.h"
#include "aha/bench/bench_network.h"
#include "aha/bench/problems.h"
#include "aha/bench/timing.h"
#include "aha/metrics/score_queue.h"

namespace aha {

std::vector<EvalRunRow> bench_eval_run(const EvalRunOptions& options, const Context& context) {
  return rows_of("eval-run", 1, options.long_list, context, [&](const Problem& p) {
    const auto [name, architecture] = name_and_architecture(p);
    EvalRunRow row{name, context.precision == Precision::kF32 ? "f32" : "bf16", p.size(0), 0, threads()};
    const Subject subject = make_subject(architecture, context);
    constexpr int64_t kForwards = 256;  // full batches, whatever the size of the images
    const Tensor pixels = torch::rand({kForwards, 3, subject.size, subject.size});
    int64_t forwards = 0;
    std::vector<std::function<void()>> pieces = {
        [&] { row.perturbed = options.run(*subject.target, row.images); },
        // As many images as the run before had: a short measurement would miss the busy moments.
        [&] {
          for (forwards = 0; forwards < row.perturbed; forwards += kForwards)
            logits_of(*subject.target, pixels, context);
        }};
    if (options.peer) pieces.push_back([&] { options.run(*subject.eager, row.images); });
    const auto kind = threads() == 1 ? TimeKind::kThreadCpu : TimeKind::kWall;
    const auto best = best_ms_each(pieces, kind, {0, 2}, context);
    const auto rate = [](int64_t images, double ms) { return 1e3 * static_cast<double>(images) / ms; };
    row.per_second = rate(row.perturbed, best[0]);
    row.forward_per_second = rate(forwards, best[1]);
    if (options.peer) row.peer_per_second = rate(row.perturbed, best[2]);
    return row;
  });
}

nlohmann::ordered_json json_from(const EvalRunRow& r) {
  nlohmann::ordered_json json = {{"name", r.name},
                                 {"precision", r.precision},
                                 {"images", r.images},
                                 {"perturbed_images", r.perturbed},
                                 {"threads", r.threads},
                                 {"per_second", r.per_second},
                                 {"forward_per_second", r.forward_per_second},
                                 {"share_of_forward", r.per_second / r.forward_per_second}};
  if (r.peer_per_second) json["peer"] = {{"per_second", *r.peer_per_second}};
  return json;
}

std::string table_from(const std::vector<EvalRunRow>& rows) {
  std::string text = fmt::format("  {:<18} {:<4} {:>14} {:>14} {:>7}\n", "perturbed images", "", "per second",
                                 "bare forward", "share");
  for (const auto& r : rows)
    text += fmt::format("  {:<18} {:<4} {:>14.0f} {:>14.0f} {:>5.1f} %{}\n", r.name, r.precision,
                        r.per_second, r.forward_per_second, 100 * r.per_second / r.forward_per_second,
                        r.peer_per_second ? fmt::format("   eager {:.0f} ({:.2f}x)", *r.peer_per_second,
                                                        r.per_second / *r.peer_per_second)
                                          : "");
  return text;
}

}  // namespace aha
