#include "aha/bench/objective_section.h"

#include <chrono>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/bench/bench_network.h"
#include "aha/bench/problems.h"
#include "aha/bench/timing.h"
#include "aha/explainer/explainer_shape.h"
#include "aha/metrics/sweep.h"
#include "aha/objective/refine.h"
#include "aha/objective/sequence_probabilities.h"
#include "aha/objective/terms.h"
#include "aha/ranking/hard_order.h"
#include "aha/train/optimizer.h"

namespace aha {
namespace {

// Our target, and eager libtorch's where a peer was asked for.
std::vector<Classifier*> sides_of(const Subject& subject, bool peer) {
  return peer ? std::vector{subject.target.get(), subject.eager.get()} : std::vector{subject.target.get()};
}

ObjectiveOptions objective_options(int64_t S, int64_t G) {
  ObjectiveOptions options;
  options.steps = static_cast<int>(S);
  options.grid_low = options.grid_high = static_cast<int>(G);
  options.grid_offsets = options.jitter = false;
  options.references = {"black"};
  return options;
}

// One training step after the other; keeps the parts of the fastest.
class TrainStep {
 public:
  TrainStep(Classifier& target, bool eager, const ObjectiveOptions& options, int64_t batch,
            const Context& context)
      : target_(target),
        eager_(eager),
        options_(options),
        context_(context),
        explainer_(make_explainer(target, {}, context)),
        parameters_(*explainer_->decoder()),
        optimizer_(parameters_, {.weight_decay = 1e-3}) {
    explainer_->decoder()->train();
    const int64_t size = target.info().input.size;
    pixels_ = torch::rand({batch, 3, size, size});
  }

  void run() {
    const int64_t B = pixels_.size(0), size = pixels_.size(2);
    auto step = draw_step(options_, {0, count_, 0, 0, 1}, B, size, size);
    if (eager_) step.sort.path = "reference";
    TrainStepTimes t;
    const auto start = Clock::now();
    last_ = start;
    Tensor classes;  // (B)
    {
      const torch::NoGradGuard no_grad;
      classes = target_.logits(pixels_).argmax(1);
    }
    const Features features = explainer_->features(pixels_, classes);
    t.features_ms = lap_ms();
    const Tensor maps = explainer_->decode(features, classes);  // (B, H, W)
    t.decoder_forward_ms = lap_ms();
    const auto soft = soft_top_k(pool(step.grid, maps), step.ks, step.sort, step.noise, context_);
    t.soft_sort_ms = lap_ms();
    const SequenceImages images{pixels_, torch::zeros_like(pixels_),
                                step.grid.region_of_pixel().view({size, size}), classes};
    const auto probs = sequence_probabilities(target_, images, soft.masks);
    t.target_ms = lap_ms();
    const Tensor loss =
        deletion_term(probs.deletion) - insertion_term(probs.insertion) + 2.5e-3 * smoothness_term(maps);
    parameters_.zero_gradients();
    loss.backward();
    parameters_.clip(1);
    optimizer_.step(1e-3, count_);
    t.backward_and_update_ms = lap_ms();
    t.step_ms = std::chrono::duration<double, std::milli>(last_ - start).count();
    if (count_++ == 0 || t.step_ms < best_.step_ms) best_ = t;
  }
  const TrainStepTimes& best() const { return best_; }

 private:
  using Clock = std::chrono::steady_clock;
  double lap_ms() {
    const auto before = std::exchange(last_, Clock::now());
    return std::chrono::duration<double, std::milli>(last_ - before).count();
  }

  Classifier& target_;
  bool eager_;
  ObjectiveOptions options_;
  const Context& context_;
  std::unique_ptr<Explainer> explainer_;
  FlatParameters parameters_;
  Optimizer optimizer_;
  Tensor pixels_;
  int64_t count_ = 0;
  Clock::time_point last_;
  TrainStepTimes best_;
};

nlohmann::ordered_json json_from(const TrainStepTimes& t) {
  return {{"step_ms", t.step_ms},
          {"features_ms", t.features_ms},
          {"decoder_forward_ms", t.decoder_forward_ms},
          {"soft_sort_ms", t.soft_sort_ms},
          {"target_ms", t.target_ms},
          {"backward_and_update_ms", t.backward_and_update_ms}};
}

std::string ratio_text(double own, const std::optional<double>& peer) {
  return peer ? fmt::format("   eager {:.1f} ({:.2f}x)", *peer, *peer / own) : "";
}

}  // namespace

std::vector<TrainRow> bench_train(const ObjectiveBenchOptions& options, const Context& context) {
  return rows_of("train", 3, options.long_list, context, [&](const Problem& p) {
    const auto [name, architecture] = name_and_architecture(p);
    TrainRow row{
        name, context.batch_size > 0 ? context.batch_size : p.size(0), p.size(1), p.size(2), threads(), {},
        {}};
    const Subject subject = make_subject(architecture, context);
    std::vector<std::unique_ptr<TrainStep>> steps;
    std::vector<std::function<void()>> pieces;
    for (Classifier* side : sides_of(subject, options.peer)) {
      steps.push_back(std::make_unique<TrainStep>(
          *side, side == subject.eager.get(), objective_options(row.steps, row.grid), row.batch, context));
      pieces.push_back([step = steps.back().get()] { step->run(); });
    }
    best_ms_each(pieces, TimeKind::kWall, {options.seconds, 3}, context);
    row.times = steps[0]->best();
    if (options.peer) row.peer = steps[1]->best();
    return row;
  });
}

std::vector<RefineRow> bench_refine(const ObjectiveBenchOptions& options, const Context& context) {
  return rows_of("refine", 3, options.long_list, context, [&](const Problem& p) {
    const auto [name, architecture] = name_and_architecture(p);
    constexpr int64_t kUnrefined = 30;  // images of a batch without refinement
    RefineRow row{name,      p.size(0), p.size(1), p.size(2), p.size(0) == 0 ? kUnrefined : 1,
                  threads(), 0,         0,         {}};
    const Subject subject = make_subject(architecture, context);
    const Tensor pixels = torch::rand({row.batch, 3, subject.size, subject.size}),
                 classes = torch::zeros({row.batch}, torch::kInt64);
    RefineOptions refine;
    refine.steps = static_cast<int>(row.refine);
    refine.guard = false;  // the steps alone, which the peer programs do too
    refine.objective = objective_options(row.steps, row.grid);
    std::vector<std::unique_ptr<Explainer>> explainers;
    std::vector<std::function<void()>> pieces;
    for (Classifier* side : sides_of(subject, options.peer)) {
      explainers.push_back(make_explainer(*side, {}, context));
      explainers.back()->decoder()->eval();
      pieces.push_back([&, side, explainer = explainers.back().get()] {
        refined_maps(*side, *explainer, pixels, classes, refine, context);
      });
    }
    pieces.push_back([&] {
      const torch::NoGradGuard no_grad;
      subject.target->logits(pixels);
    });
    const auto best = best_ms_each(pieces, TimeKind::kWall, {options.seconds, 3}, context);
    const auto images = static_cast<double>(row.batch);
    row.ms = best[0] / images;
    row.target_ms = best.back() / images;
    if (options.peer) row.peer_ms = best[1] / images;
    return row;
  });
}

std::vector<EvalRow> bench_eval(const ObjectiveBenchOptions& options, const Context& context) {
  return rows_of("eval", 2, options.long_list, context, [&](const Problem& p) {
    const auto [name, architecture] = name_and_architecture(p);
    EvalRow row{name, context.batch_size > 0 ? context.batch_size : p.size(0), p.size(1), threads(), 0, {}};
    const Subject subject = make_subject(architecture, context);
    const Tensor pixels = torch::rand({row.batch, 3, subject.size, subject.size});
    const Tensor black = torch::zeros_like(pixels), classes = torch::zeros({row.batch}, torch::kInt64);
    const Tensor order =
        torch::rand({row.batch, int64_t{subject.size} * subject.size}).argsort(1, /*descending=*/true);
    SweepOptions sweep_options;
    sweep_options.steps = static_cast<int>(row.steps);
    std::vector<std::function<void()>> pieces;
    for (Classifier* side : sides_of(subject, options.peer))
      pieces.push_back([&, side] {
        const SweepEnds ends{logits_of(*side, pixels, context), logits_of(*side, black, context)};
        sweep(*side, pixels, black, order, classes, ends, sweep_options, context);
      });
    const auto best = best_ms_each(pieces, TimeKind::kWall, {options.seconds, 3}, context);
    row.ms = best[0] / static_cast<double>(row.batch);
    if (options.peer) row.peer_ms = best[1] / static_cast<double>(row.batch);
    return row;
  });
}

nlohmann::ordered_json json_from(const TrainRow& r) {
  nlohmann::ordered_json json = {
      {"name", r.name}, {"batch", r.batch}, {"steps", r.steps}, {"grid", r.grid}, {"threads", r.threads}};
  json.update(json_from(r.times));
  if (r.peer) json["peer"] = json_from(*r.peer);
  return json;
}

nlohmann::ordered_json json_from(const RefineRow& r) {
  nlohmann::ordered_json json = {
      {"name", r.name},   {"refine", r.refine},   {"steps", r.steps}, {"grid", r.grid},
      {"batch", r.batch}, {"threads", r.threads}, {"ms", r.ms},       {"target_forward_ms", r.target_ms}};
  if (r.peer_ms) json["peer"] = {{"ms", *r.peer_ms}};
  return json;
}

nlohmann::ordered_json json_from(const EvalRow& r) {
  nlohmann::ordered_json json = {
      {"name", r.name}, {"batch", r.batch}, {"steps", r.steps}, {"threads", r.threads}, {"ms", r.ms}};
  if (r.peer_ms) json["peer"] = {{"ms", *r.peer_ms}};
  return json;
}

std::string table_from(const std::vector<TrainRow>& rows) {
  std::string text =
      fmt::format("  {:<18} {:>5} {:>3} {:>3} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "ms per step", "batch",
                  "S", "G", "step", "features", "decoder", "sort", "target", "update");
  const auto cells = [](const TrainStepTimes& t) {
    return fmt::format("{:>10.1f} {:>9.1f} {:>9.1f} {:>9.2f} {:>9.1f} {:>9.1f}", t.step_ms, t.features_ms,
                       t.decoder_forward_ms, t.soft_sort_ms, t.target_ms, t.backward_and_update_ms);
  };
  for (const auto& r : rows) {
    text += fmt::format("  {:<18} {:>5} {:>3} {:>3} {}\n", r.name, r.batch, r.steps, r.grid, cells(r.times));
    if (r.peer)
      text += fmt::format("  {:<31} {}  {:.2f}x\n", "  eager libtorch", cells(*r.peer),
                          r.peer->step_ms / r.times.step_ms);
  }
  return text;
}

std::string table_from(const std::vector<RefineRow>& rows) {
  std::string text;
  for (const auto& r : rows)
    text += fmt::format(
        "  {:<18} T = {:<2} S = {:<3} G = {:<3} batch {:<3} {:>9.2f} ms per image, {:.1f} of the target's "
        "forwards{}\n",
        r.name, r.refine, r.steps, r.grid, r.batch, r.ms, r.ms / r.target_ms, ratio_text(r.ms, r.peer_ms));
  return text;
}

std::string table_from(const std::vector<EvalRow>& rows) {
  std::string text;
  for (const auto& r : rows)
    text += fmt::format("  {:<18} {} steps, batch {:<3} {:>9.1f} ms per image, map and reference{}\n", r.name,
                        r.steps, r.batch, r.ms, ratio_text(r.ms, r.peer_ms));
  return text;
}

}  // namespace aha
