// optimized: the map itself, optimized on this image by the objective that explainers are trained with
// (objective_step.h: soft order, deletion and insertion on every reference, smoothness). No explainer is
// needed, only gradients of the target: what one has for a network without a trained explainer, and a ceiling
// for those that have one.
//
// The map is a residual on a start (objective/map_residual.h), moved by Adam. The start is 0 or another
// method's map: an explainer's as it is, of others their order, 0..25 (a range at which the soft
// order is sharp but still moves; the bundled ImageNet explainer takes its prior in so).
//
// lr = 1, 50 steps, ViT-Tiny/16 at bf16, three photos that are not evaluated on: insertion - deletion 0.608,
// 0.535, 0.247. Other learning rates were not compared.
//
// Cost: `steps` * references * 2 S forwards and backwards, 1200 + 1200 by default, and the start.
#include <cmath>
#include <mutex>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/explainer/explainer_catalog.h"
#include "aha/explainer/prior.h"
#include "aha/methods/catalog.h"
#include "aha/methods/method_records.h"
#include "aha/objective/refine.h"
#include "aha/tensor/one_thread_each.h"

namespace aha {
namespace {

constexpr double kStartRange = 25;

class Optimized : public Method {
 public:
  Fields fields() override {
    return Fields()
        .add("steps", steps_, "of Adam")
        .range(0, 100000)
        .add("lr", residual_.lr, "learning rate; scores of the soft order have a range of about 25")
        .range(1e-6, 1000)
        .add("grid", residual_.grid,
             "numbers a side that are optimized; 0 = 28 at 224 pixels, half the side up to 64 pixels")
        .range(0, 4096)
        .add("S", perturbation_steps_, "perturbed images of each direction and reference")
        .range(1, 4096)
        .add("init", init_, "method whose map is the start; none = 0 everywhere");
  }

  void prepare(const MethodContext& context) override {
    Method::prepare(context);
    if (init_ != "none") start_ = make_method(init_, context);
    const nlohmann::json plain = nlohmann::json::object();
    objective_ = refine_options_from_card(plain, plain, 1).objective;
    if (start_ && start_->learned()) {
      const ModelCard& card = context.explainer->card;
      objective_ = refine_options_from_card(card.training, card.refinement, card.temperature).objective;
    }
    objective_.steps = perturbation_steps_;
    objective_.spread_ks = false;
    const int size = target_->info().input.size;
    if (residual_.grid == 0) residual_.grid = usual_residual_grid(size);
    if (residual_.grid > size)
      throw input_error("method optimized: expected a grid of 1..{}, found {}", size, residual_.grid);
  }

  Attribution attribute(const Tensor& pixels, const Tensor& classes, std::span<const uint64_t> streams,
                        const Context& context) override {
    const int64_t B = pixels.size(0);
    auto progress = context.progress("optimized", B * steps_);
    std::mutex drawing;
    Attribution out;
    out.made.resize(static_cast<size_t>(B));
    std::vector<Tensor> maps(static_cast<size_t>(B));
    const auto one = [&](int64_t b) {
      maps[b] = optimized({pixels.narrow(0, b, 1), classes.narrow(0, b, 1)}, streams.subspan(b, 1), context,
                          out.made[b], [&] {
                            const std::lock_guard lock(drawing);
                            progress.advance();
                          });
    };
    // As refine.cpp: images side by side where there are enough of them, else the perturbed images of each.
    if (pixels.is_cpu() && B >= threads()) {
      one_thread_each(B, one);
    } else {
      const torch::AutoGradMode grad(true);
      const OneThread one_thread;
      for (int64_t b = 0; b < B; ++b) one(b);
    }
    out.maps = torch::cat(maps);
    return out;
  }

 private:
  // (1, H, W)
  Tensor start(const ObjectiveImages& image, std::span<const uint64_t> stream, const Context& context,
               Passes& passes) const {
    const int64_t H = image.pixels.size(2), W = image.pixels.size(3);
    if (!start_) return torch::zeros({1, H, W}, image.pixels.options());
    const Attribution made = start_->attribute(image.pixels, image.classes, stream, context);
    passes = made.made[0].passes;
    if (start_->learned()) return made.maps;
    const torch::NoGradGuard no_grad;
    return kStartRange * map_of_order(pool(make_grid(H, W, residual_.grid), made.maps), H, W);
  }

  Tensor optimized(ObjectiveImages image, std::span<const uint64_t> stream, const Context& context,
                   Attribution::Made& made, const std::function<void()>& step_done) const {
    const int64_t H = image.pixels.size(2), W = image.pixels.size(3);
    MapResidual residual(start(image, stream, context, made.passes).detach(), residual_);
    image.references = kept_references(*target_, image.pixels, objective_);
    const auto failed = [&](const std::string& what) {
      made.failure = fmt::format("{} after {} steps at lr {:g}", what, made.steps, residual_.lr);
      return torch::full({1, H, W}, std::nan(""), image.pixels.options());
    };
    while (made.steps < steps_) {
      context.cancel->check();
      residual.zero_gradient();
      const auto drawn = draw_step(objective_, {context.seed, made.steps, 0, 0, 1.0}, 1, H, W);
      const Tensor loss = objective(*target_, residual.map(), image, drawn, objective_, context).loss;
      made.loss = loss.item<double>();
      if (!std::isfinite(made.loss)) return failed("the loss is not finite");
      loss.backward();
      residual.step();
      ++made.steps;
      const auto each = 2.0 * objective_.steps * static_cast<double>(objective_.references.size());
      made.passes.forwards += each;
      made.passes.backwards += each;
      step_done();
    }
    const Tensor map = residual.map().detach();
    return map.isfinite().all().item<bool>() ? map : failed("the map is not finite");
  }

  std::unique_ptr<Method> start_;
  ObjectiveOptions objective_;
  MapResidualOptions residual_;
  int steps_ = 50, perturbation_steps_ = 4;
  std::string init_ = "none";
};

}  // namespace

MethodRecord optimized_method() {
  return {"optimized",
          "a map optimized on this image by the objective of training, without an explainer; slow",
          "",
          "gradients",
          fits_any,
          [] { return std::unique_ptr<Method>(new Optimized); },
          "No method of the paper's tables: the refinement of its section 3.3 with the map itself in place "
          "of the "
          "decoder."};
}

}  // namespace aha
