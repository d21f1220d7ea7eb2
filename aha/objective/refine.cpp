#include "aha/objective/refine.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>

#include "aha/tensor/torch.h"

#include <cmath>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/timer.h"
#include "aha/objective/guard.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

bool all_finite(const Tensor& values) {
  return torch::isfinite(values).all().item<bool>();
}

// A map, and whether it is the explainer's own.
struct KeptByGuard {
  Tensor map;
  bool unrefined = false;
};

// What the steps change, and the map that follows from it.
struct Refinable {
  virtual ~Refinable() = default;
  virtual Tensor map() = 0;  // (1, H, W), differentiable where gradients are on
  virtual void zero_gradient() = 0;
  virtual void move() = 0;        // along the gradient
  virtual int moves() const = 0;  // in a step
  virtual double lr() const = 0;
};

class RefinableHead : public Refinable {
 public:
  RefinableHead(Explainer& explainer, const Features& features, const Tensor& classes,
                const RefineOptions& options)
      : features_(features),
        classes_(classes),
        options_(options),
        head_(explainer.decoder_copy()),
        optimizer_(learning(*head_),
                   torch::optim::AdamWOptions(options.lr).weight_decay(options.weight_decay)) {}

  Tensor map() override {
    return head_->forward(features_.levels, classes_, features_.height, features_.width, features_.prior,
                          features_.prior_parts);
  }
  void zero_gradient() override { optimizer_.zero_grad(); }
  void move() override {
    torch::nn::utils::clip_grad_norm_(head_->parameters(), options_.clip);
    optimizer_.step();
  }
  int moves() const override { return 1; }
  double lr() const override { return options_.lr; }

 private:
  static std::vector<Tensor> learning(DecoderImpl& head) {
    for (auto& parameter : head.parameters()) parameter.requires_grad_(true);
    return head.parameters();
  }

  const Features& features_;
  const Tensor& classes_;
  const RefineOptions& options_;
  std::shared_ptr<DecoderImpl> head_;
  torch::optim::AdamW optimizer_;
};

class RefinableMap : public Refinable {
 public:
  RefinableMap(const Tensor& start, const RefineOptions& options)
      : residual_(start, options.residual), options_(options) {}

  Tensor map() override { return residual_.map(); }
  void zero_gradient() override { residual_.zero_gradient(); }
  void move() override { residual_.step(); }
  int moves() const override { return std::min(options_.moves, options_.objective.steps); }
  double lr() const override { return options_.residual.lr; }

 private:
  MapResidual residual_;
  const RefineOptions& options_;
};

// One image with everything that changes while it is refined.
struct OneImage {
  Classifier& target;
  Explainer& explainer;
  ObjectiveImages images;  // B = 1
  const RefineOptions& options;
  const Context& context;
  int steps_done = 0;
  double last_loss = std::nan("");
  std::string failed = {};                  // why it ended early
  std::vector<KeptByGuard> snapshots = {};  // one of options.snapshots each
  std::vector<double> snapshot_loss = {};
  Tensor own = {};       // the explainer's map, where the guard is asked
  double own_score = 0;  // NaN where the target gives none
  double guard_ms = 0;   // of a look of the guard
  double step_ms = 0;    // of the slowest step; before the first what it is estimated to take
  double first_step_ms = 0;
  int beside = 0;  // forward passes outside of the steps

  // Whether a step, and the look of the guard after it, fit into the budget.
  bool fits(const Timer& timer, double looks = 1) {
    if (options.budget_ms <= 0) return true;
    const double end_ms = timer.ms() + step_ms + looks * guard_ms;
    if (steps_done == 0) first_step_ms = end_ms;
    return end_ms <= options.budget_ms;
  }

  void expect_step(double forward_ms) {
    constexpr double kForwardAndBackward = 3;  // of a forward pass
    const auto passes = static_cast<double>(options.grids * 2 * options.objective.steps) *
                        static_cast<double>(rounds_of(options.objective));
    first_step_ms = step_ms = kForwardAndBackward * passes * forward_ms;
  }

  // From one forward pass on one thread: perturbed images are spread over the threads.
  void estimate() {
    const torch::NoGradGuard no_grad;
    const Timer timer;
    target.logits(images.pixels);
    ++beside;
    const double forward_ms = timer.ms() / threads();
    guard_ms = guard_forwards(options) * forward_ms;
    expect_step(forward_ms);
  }

  KeptByGuard refined() {
    const Timer timer;
    const Features features = explainer.features(images.pixels, images.classes);
    std::unique_ptr<Refinable> part;
    if (options.form == "map")
      part = std::make_unique<RefinableMap>(own_map(features), options);
    else
      part = std::make_unique<RefinableHead>(explainer, features, images.classes, options);
    snapshots.resize(options.snapshots.size());
    snapshot_loss.resize(options.snapshots.size());
    const auto take_snapshots = [&] {
      for (size_t i = 0; i < snapshots.size(); ++i)
        if (options.snapshots[i] == steps_done)
          snapshots[i] = guarded(final_map(*part)), snapshot_loss[i] = last_loss;
    };
    if (options.budget_ms > 0 && options.steps > 0) estimate();
    const bool any = options.steps > 0 && fits(timer, 2);
    if (any) images.references = kept_references(target, images.pixels, options.objective);
    if (options.guard && any) {
      const Timer look;
      own = final_map(*part);
      if (all_finite(own)) own_score = hard_ins_del(target, own, images, options.objective);
      beside += guard_forwards(options);
      guard_ms = look.ms();
      if (options.budget_ms > 0) expect_step(guard_ms / guard_forwards(options));
    }
    take_snapshots();
    while (any && steps_done < options.steps) {
      context.cancel->check();
      if (!fits(timer)) break;
      const Timer one;
      if (options.form == "head-then-map" && steps_done == options.head_steps)
        part = std::make_unique<RefinableMap>(final_map(*part), options);
      step(*part);
      if (!failed.empty()) break;
      ++steps_done;
      take_snapshots();
      step_ms = steps_done == 1 ? one.ms() : std::max(step_ms, one.ms());
    }
    const Tensor map = final_map(*part);
    if (failed.empty() && !all_finite(map))
      failed = fmt::format("the map is not finite after {} refinement steps", steps_done);
    if (failed.empty()) return guarded(map);
    const Tensor nothing = torch::full_like(map, std::nan(""));
    for (auto& snapshot : snapshots)
      if (!snapshot.map.defined() || !all_finite(snapshot.map)) snapshot = {nothing};
    return {nothing};
  }

  // This map where it is clearly better than the explainer's own, else the latter.
  KeptByGuard guarded(const Tensor& map) {
    if (!own.defined() || steps_done == 0 || !all_finite(map)) return {map};
    beside += guard_forwards(options);
    if (hard_ins_del(target, map, images, options.objective) > own_score + kGuardMargin) return {map};
    return {own, true};
  }

  Tensor own_map(const Features& features) {
    const torch::NoGradGuard no_grad;
    return explainer.decode(features, images.classes);
  }

  static Tensor final_map(Refinable& part) {
    const torch::NoGradGuard no_grad;
    return part.map();
  }

  void step(Refinable& part) {
    const int moves = part.moves();
    double sum = 0;
    for (int m = 0; m < moves && failed.empty(); ++m) sum += moved(part, m, moves);
    last_loss = sum / moves;
  }

  // The loss before move m of so many.
  double moved(Refinable& part, int m, int moves) {
    part.zero_gradient();
    const Tensor map = part.map();
    if (!all_finite(map)) {
      failed =
          fmt::format("the map is not finite after {} refinement steps at lr {:g}", steps_done, part.lr());
      return last_loss;
    }
    ObjectiveOptions share = options.objective;
    share.steps = share.steps * (m + 1) / moves - share.steps * m / moves;
    Tensor loss;
    for (int g = 0; g < options.grids; ++g) {
      const StepPlace place{context.seed, steps_done, m * options.grids + g, 0, 1.0};
      const auto drawn = draw_step(share, place, 1, map.size(1), map.size(2));
      const Tensor one = objective(target, map, images, drawn, share, context).loss;
      loss = loss.defined() ? loss + one : one;
    }
    loss = loss / options.grids;
    const double value = loss.item<double>();
    if (!std::isfinite(value)) {
      failed = fmt::format("the loss of refinement is not finite at step {}, lr {:g}", steps_done, part.lr());
      return value;
    }
    loss.backward();
    part.move();
    return value;
  }
};

// (B, H, W): what the explainer says in one forward pass. Several images per piece share what it costs to
// call a network of many small steps; many images per piece would only need more memory.
Tensor unrefined_maps(Explainer& explainer, const Tensor& pixels, const Tensor& classes) {
  constexpr int64_t kMost = 16;
  const int64_t B = pixels.size(0), n = std::clamp<int64_t>((B + threads() - 1) / threads(), 1, kMost);
  std::vector<Tensor> maps(static_cast<size_t>((B + n - 1) / n));
  one_thread_each(static_cast<int64_t>(maps.size()), [&](int64_t i) {
    const torch::NoGradGuard no_grad;
    const int64_t first = i * n, count = std::min(n, B - first);
    maps[i] = explainer.map(pixels.narrow(0, first, count), classes.narrow(0, first, count));
  });
  return torch::cat(maps);
}

}  // namespace

Fields fields(RefineOptions& o) {
  return Fields()
      .add("T", o.steps, "refinement steps on this image")
      .range(0, 100000)
      .add("refine", o.form, "what the steps change: the decoder, the map, or the decoder first")
      .choices({"head", "map", "head-then-map"})
      .add("head-steps", o.head_steps, "of head-then-map: steps on the decoder before those on the map")
      .range(0, 100000)
      .nest("", fields(o.residual))
      .add("moves", o.moves, "of the map in a step, which share its S perturbed images")
      .range(1, 4096)
      .add("lr", o.lr, "learning rate of the decoder; default: what the explainer's card says")
      .range(0, 10)
      .add("spread", o.objective.spread_ks, "values of k of its own for each reference")
      .add("S", o.objective.steps, "perturbed images of each direction, step and reference")
      .range(1, 4096)
      .add("grids", o.grids, "region grids per refinement step")
      .range(1, 64)
      .add("guard", o.guard, "keep the explainer's own map where hard masks show it to be the better one")
      .add("budget-ms", o.budget_ms, "refine as far as this time allows; 0 = all steps")
      .range(0, 1e9);
}

RefineOptions refine_options_from_card(const nlohmann::json& training, const nlohmann::json& refinement,
                                       double temperature) {
  RefineOptions options;
  const Fields known = fields(options.objective);
  for (const auto& [key, value] : training.items())
    if (const Field* field = known.find(key)) set_from_json(*field, value, "explainer card: training");
  options.objective.references = {"black", "mean", "blur"};
  options.objective.reference_choice = "all";
  options.objective.noise = options.objective.noise_final = 0;
  options.objective.tau = options.objective.tau_final = temperature;
  options.steps = 0;
  set_all_from_json(fields(options), refinement, "explainer card: refinement");
  return options;
}

int guard_forwards(const RefineOptions& options) {
  return options.guard ? 2 * kGuardPoints * static_cast<int>(options.objective.references.size()) : 0;
}

Refined refined_maps(Classifier& target, Explainer& explainer, const Tensor& pixels, const Tensor& classes,
                     const RefineOptions& options, const Context& context) {
  check_shape(pixels, {-1, 3, -1, -1}, "pixels");
  const int64_t B = pixels.size(0);
  check_shape(classes, {B}, "classes");
  for (const int steps : options.snapshots)
    if (steps < 0 || steps >= options.steps)
      throw input_error("refinement: expected snapshots after 0..{} steps, found {}", options.steps - 1,
                        steps);
  const auto images = static_cast<size_t>(B);
  Refined result{{},
                 std::vector<int>(images),
                 std::vector<double>(images),
                 std::vector<int>(images),
                 std::vector<char>(images),
                 std::vector<double>(images, std::nan("")),
                 std::vector<std::string>(images),
                 {},
                 {},
                 {}};
  result.snapshot_unrefined.assign(options.snapshots.size(), result.unrefined);
  result.snapshot_loss.assign(options.snapshots.size(), result.loss);
  if (options.steps == 0 && pixels.is_cpu() && B > 0) {
    result.maps = unrefined_maps(explainer, pixels, classes);
    for (int64_t b = 0; b < B; ++b)
      if (!all_finite(result.maps[b])) {
        result.maps[b].fill_(std::nan(""));
        result.failed[b] = "the explainer's map is not finite";
      }
    return result;
  }
  std::vector<Tensor> maps(images);
  std::vector<std::vector<Tensor>> snapshots(options.snapshots.size(), std::vector<Tensor>(images));
  const auto one = [&](int64_t b) {
    OneImage image{target, explainer, {pixels.narrow(0, b, 1), classes.narrow(0, b, 1)}, options, context};
    const KeptByGuard kept = image.refined();
    maps[b] = kept.map.detach();
    result.unrefined[b] = kept.unrefined;
    result.steps[b] = image.steps_done;
    result.first_step_ms[b] = image.first_step_ms;
    result.beside[b] = image.beside;
    result.loss[b] = image.last_loss;
    result.failed[b] = image.failed;
    for (size_t i = 0; i < snapshots.size(); ++i) {
      if (!image.snapshots[i].map.defined())
        throw work_error("refinement: the budget ended before step {}, whose map is wanted",
                         options.snapshots[i]);
      snapshots[i][b] = image.snapshots[i].map;
      result.snapshot_unrefined[i][b] = image.snapshots[i].unrefined;
      result.snapshot_loss[i][b] = image.snapshot_loss[i];
    }
  };
  // Enough images to keep every thread busy: side by side. Fewer: one after the other, the perturbed images
  // of each spread over the threads. The numbers are the same.
  if (pixels.is_cpu() && B >= threads()) {
    one_thread_each(B, one);
  } else {
    const torch::AutoGradMode grad(true);
    for (int64_t b = 0; b < B; ++b) {
      const OneThread one_thread;
      one(b);
    }
  }
  result.maps = torch::cat(maps);  // (B, H, W)
  for (const auto& passed : snapshots) result.snapshots.push_back(torch::cat(passed));
  return result;
}

}  // namespace aha
