// aha: the map of a trained explainer, in one forward pass; with T > 0 T steps of the objective on this image
// follow (objective/refine.h), and the better of both maps is kept unless guard=off. refine=head:guard=off is
// the paper's form.
#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/explainer/prior.h"
#include "aha/methods/method_records.h"
#include "aha/objective/refine.h"

namespace aha {
namespace {

bool has_explainer(const MethodContext& context) {
  return context.explainer != nullptr;
}

constexpr int kMostSteps = 100000;

class Learned : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("T", steps_, "refinement steps on this image; 0 with a budget = as many as it allows")
        .range(0, kMostSteps)
        .add("refine", form_,
             "what the steps change: the decoder (the paper's form), the map, or one after the other")
        .choices({"card", "head", "map", "head-then-map"})
        .add("head-steps", head_steps_, "of head-then-map, on the decoder; -1 = what the card says")
        .range(-1, kMostSteps)
        .add("map-lr", map_lr_, "how far a step moves the map; 0 = what the card says")
        .range(0, 1000)
        .add("map-grid", map_grid_, "numbers a side that are added to the map; 0 = what the card says")
        .range(0, 4096)
        .add("moves", moves_, "of the map in a step, which share its S; 0 = what the card says")
        .range(0, 4096)
        .add("optimizer", optimizer_, "of the map's steps")
        .choices({"card", "adam", "sign", "gradient", "momentum"})
        .add("references", references_, "all of them in each step, or one that is drawn")
        .choices({"all", "one"})
        .add("spread", spread_, "values of k of its own for each reference")
        .choices({"card", "on", "off"})
        .add("smoothness", smoothness_, "weight; -1 = card")
        .range(-1, 1e6)
        .add("lr", lr_, "learning rate of the decoder; 0 = what the explainer's card says")
        .range(0, 10)
        .add("S", perturbation_steps_,
             "perturbed images of each direction and reference; 0 = what the card says")
        .range(0, 4096)
        .add("grids", grids_, "region grids per refinement step; 0 = what the card says")
        .range(0, 64)
        .add("guard", guard_,
             "keep the unrefined map where hard masks show it to be the better one; the paper's form is off")
        .choices({"card", "on", "off"})
        .add("budget", budget_ms_, "milliseconds; stop before the step that would end later; 0 = no limit")
        .range(0, 1e9);
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    explainer_ = context.explainer->explainer.get();
    const ModelCard& card = context.explainer->card;
    sees_target_ = card.encoder && card.encoder->architecture == "target";
    const auto& info = target_->info();
    const int classes = explainer_->decoder()->options.classes;
    if (classes != info.classes)
      throw input_error("explainer: expected one for the {} classes of {}, found one for {} classes{}",
                        info.classes, info.name, classes,
                        card.target ? " (made for " + card.target->name + ")" : "");
    if (card.input.size != info.input.size)
      throw input_error(
          "explainer: expected one for images of {} pixels, as {} sees them, found one for {} pixels",
          info.input.size, info.name, card.input.size);
    const bool looks_at_target = sees_target_ || explainer_->decoder()->options.prior != "none";
    if (!looks_at_target && card.target && !info.sha256.empty() && !made_for(card, *target_))
      spdlog::info(
          "the explainer was trained for {}, not for {}: at T = 0 its map knows nothing of the latter",
          card.target->name, info.name);
    options_ = refine_options_from_card(card.training, card.refinement, card.temperature);
    options_.steps = steps_ == 0 && budget_ms_ > 0 ? kMostSteps : steps_;
    options_.budget_ms = budget_ms_;
    if (lr_ > 0) options_.lr = lr_;
    if (perturbation_steps_ > 0) options_.objective.steps = perturbation_steps_;
    if (grids_ > 0) options_.grids = grids_;
    if (map_grid_ > info.input.size)
      throw input_error("method aha: map-grid: expected 1..{}, found {}", info.input.size, map_grid_);
    if (guard_ != "card") options_.guard = guard_ == "on";
    if (form_ != "card") options_.form = form_;
    if (head_steps_ >= 0) options_.head_steps = head_steps_;
    if (map_lr_ > 0) options_.residual.lr = map_lr_;
    if (map_grid_ > 0) options_.residual.grid = map_grid_;
    if (moves_ > 0) options_.moves = moves_;
    if (optimizer_ != "card") options_.residual.optimizer = optimizer_;
    if (spread_ != "card") options_.objective.spread_ks = spread_ == "on";
    if (smoothness_ >= 0) options_.objective.lambda_smoothness = smoothness_;
    options_.objective.reference_choice = references_;
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t>,
                        const Context& context) override {
    const Refined refined = refined_maps(*target_, *explainer_, pixels, classes, options_, context);
    Attribution out =
        attribution_of(refined.maps, refined.steps, refined.unrefined, refined.loss, refined.failed);
    for (size_t b = 0; b < out.made.size() && timed(); ++b) {
      out.made[b].passes = passes(refined.steps[b], refined.beside[b]);
      if (refined.steps[b] == 0)
        spdlog::warn(
            "the budget of {:g} ms is below one refinement step, which would end after {:.0f} ms: T = 0",
            budget_ms_, refined.first_step_ms[b] + 0.5);
    }
    return out;
  }

  bool shares_work_with(const Method& other) const override {
    const auto* shorter = dynamic_cast<const Learned*>(&other);
    return shorter && shorter->steps_ < steps_ && shorter->explainer_ == explainer_ && budget_ms_ == 0 &&
           shorter->budget_ms_ == 0 && (shorter->steps_ == 0 || shorter->without_steps() == without_steps());
  }

  std::vector<Attribution> attribute_shared(std::span<Method* const> others, const Tensor& pixels,
                                            const Tensor& classes, std::span<const uint64_t>,
                                            const Context& context) override {
    RefineOptions options = options_;
    for (const Method* other : others)
      options.snapshots.push_back(dynamic_cast<const Learned&>(*other).steps_);
    const Refined refined = refined_maps(*target_, *explainer_, pixels, classes, options, context);
    std::vector<Attribution> all = {
        attribution_of(refined.maps, refined.steps, refined.unrefined, refined.loss, refined.failed)};
    for (size_t i = 0; i < others.size(); ++i)
      all.push_back(attribution_of(refined.snapshots[i],
                                   std::vector<int>(refined.steps.size(), options.snapshots[i]),
                                   refined.snapshot_unrefined[i], refined.snapshot_loss[i], refined.failed));
    return all;
  }

  bool learned() const override { return true; }

  bool timed() const override { return budget_ms_ > 0; }

 private:
  // Everything that the steps depend on but how many there are.
  nlohmann::json without_steps() const {
    RefineOptions options = options_;
    options.steps = 0;
    nlohmann::json all = json_from_fields(aha::fields(options));
    all["objective"] = json_from_fields(aha::fields(options.objective));
    return all;
  }

  // An image that failed after its snapshot was taken has that map all the same.
  Attribution attribution_of(const Tensor& maps, const std::vector<int>& steps,
                             const std::vector<char>& unrefined, const std::vector<double>& loss,
                             const std::vector<std::string>& failed) const {
    Attribution out(maps, Passes{});
    for (size_t b = 0; b < out.made.size(); ++b) {
      // The loss is that of the map: none where the guard kept the other one.
      out.made[b] = {passes(steps[b], looks(steps[b])), steps[b], unrefined[b] ? std::nan("") : loss[b], {}};
      if (!maps[static_cast<int64_t>(b)].isfinite().all().item<bool>()) out.made[b].failure = failed[b];
    }
    return out;
  }

  // Forward passes of the guard, which looks at the explainer's own map and at the refined one.
  int looks(int steps) const { return options_.guard && steps > 0 ? 2 * guard_forwards(options_) : 0; }

  Passes passes(int steps, int beside) const {
    const auto each = static_cast<double>(steps * options_.grids * 2 * options_.objective.steps) *
                      static_cast<double>(rounds_of(options_.objective));
    // Features are a forward pass, a prior is another and maybe a backward pass; the same forward pass where
    // they can share it.
    const auto& name = explainer_->decoder()->options.prior;
    const bool prior = name != "none", shared = explainer_->shares_forward();
    return {each + beside + (sees_target_ ? 1 : 0) + (prior && !shared ? 1 : 0),
            each + prior_backwards(name)};
  }

  Explainer* explainer_ = nullptr;
  int steps_ = 0, perturbation_steps_ = 0, grids_ = 0;
  int head_steps_ = -1, map_grid_ = 0, moves_ = 0;
  std::string guard_ = "card", form_ = "card", optimizer_ = "card", references_ = "all", spread_ = "card";
  double lr_ = 0, map_lr_ = 0, budget_ms_ = 0, smoothness_ = -1;
  bool sees_target_ = false;  // its features are the target's own: one forward pass
  RefineOptions options_;
};

}  // namespace

MethodRecord aha_method() {
  return {"aha",
          "a trained explainer's map; T refinement steps on this image",
          "Learn to Rank: Visual Attribution by Learning Importance Ranking",
          "an explainer (--explainer)",
          has_explainer,
          [] { return std::unique_ptr<Method>(new Learned); }};
}

}  // namespace aha
