// One training step of the objective for ViT-Tiny/16 at 224, and where its time goes: the other side of bench/peers/train_step.py.
//
//   ninja train_step_bench && bin/train_step_bench [BATCH] [S] [G] [REPEAT]
//
// Random weights (speed does not depend on them); the target's blocks 2, 5, 8, 11 are the features; a decoder of 64 channels. Prints one JSON object, best of REPEAT.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>

#include "aha/base/parallel.h"
#include "aha/base/startup.h"
#include "aha/models/vit.h"
#include "aha/models/vit_encoder.h"
#include "aha/objective/ladder_probabilities.h"
#include "aha/objective/terms.h"
#include "aha/train/explainer_trainer.h"

namespace {

using Clock = std::chrono::steady_clock;

class Stopwatch {
 public:
  double lap_ms() {
    const auto now = Clock::now();
    const double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }

 private:
  Clock::time_point last_ = Clock::now();
};

}  // namespace

int main(int argc, char** argv) {
  using namespace aha;
  prepare_process(argv);
  const auto number = [&](int i, int usual) { return argc > i ? std::atoi(argv[i]) : usual; };
  const int B = number(1, 8), S = number(2, 16), G = number(3, 14), repeat = number(4, 2);
  Context context;
  start_compute(context);

  Vit network{VitConfig{}};
  network->initialise(1);
  network->eval();
  for (auto& parameter : network->parameters()) parameter.requires_grad_(false);
  ClassifierInfo info;
  info.name = info.architecture = "vit_ti_16";
  info.classes = 1000;
  VitClassifier target(network, info);
  const auto explainer = make_explainer(target, {}, context);
  explainer->decoder()->train();
  FlatParameters parameters(*explainer->decoder());
  Optimiser optimiser(parameters, {.weight_decay = 1e-3});

  ObjectiveOptions options;
  options.steps = S;
  options.grid_low = options.grid_high = G;
  options.grid_offsets = false;
  options.jitter = false;
  options.references = {"black"};
  const Tensor pixels = torch::rand({B, 3, 224, 224});
  nlohmann::ordered_json best;
  for (int r = 0; r < repeat; ++r) {
    const auto step = draw_step(options, {0, r, 0, 0, 1}, B, 224, 224);
    Stopwatch whole, part;
    const Features features = explainer->features(pixels);
    Tensor classes;
    {
      const torch::NoGradGuard no_grad;
      classes = target.logits(pixels).argmax(1);
    }
    const double features_ms = part.lap_ms();
    const Tensor maps = explainer->decode(features, classes);
    const double decoder_ms = part.lap_ms();
    const auto soft = soft_top_k(pool(step.grid, maps), step.ks, step.sort, step.noise, context);
    const double sort_ms = part.lap_ms();
    const LadderImages images{pixels, torch::zeros_like(pixels), step.grid.region_of_pixel().view({224, 224}), classes};
    const auto probs = ladder_probabilities(target, images, soft.masks);
    const double target_ms = part.lap_ms();
    const Tensor loss = deletion_term(probs.deletion) - insertion_term(probs.insertion) + 2.5e-3 * smoothness_term(maps);
    parameters.zero_gradients();
    loss.backward();
    parameters.clip(1);
    optimiser.step(1e-3, r);
    const double update_ms = part.lap_ms(), step_ms = whole.lap_ms();
    if (best.empty() || step_ms < best["step_ms"].get<double>())
      best = {{"features_ms", features_ms}, {"decoder_forward_ms", decoder_ms}, {"soft_sort_ms", sort_ms}, {"target_ms", target_ms},
              {"backward_and_update_ms", update_ms}, {"step_ms", step_ms}};
  }
  best["batch"] = B;
  best["steps"] = S;
  best["grid"] = G;
  best["threads"] = threads();
  best["engine"] = target.engine() != nullptr;
  std::puts(best.dump().c_str());
  return 0;
}
