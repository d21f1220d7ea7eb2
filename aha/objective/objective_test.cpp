#include <gtest/gtest.h>
#include <torch/nn/functional.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>

#include "aha/tensor/torch.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "aha/base/error.h"
#include "aha/base/parallel.h"
#include "aha/base/rank_correlation.h"
#include "aha/objective/guard.h"
#include "aha/objective/refine.h"
#include "aha/objective/sequence_probabilities.h"
#include "aha/objective/terms.h"
#include "aha/tensor/one_thread_each.h"
#include "aha/testing/close.h"
#include "aha/testing/toy_classifiers.h"

namespace aha {
namespace {

using checks::LinearToy;
using checks::PlantedToy;

// Regions of a 2 x 2 grid on an image of `size` pixels.
Tensor quarters(int64_t size) {
  Tensor region = torch::empty({size, size}, torch::kInt32);
  for (int64_t y = 0; y < size; ++y)
    for (int64_t x = 0; x < size; ++x) region[y][x] = static_cast<int>((y >= size / 2) * 2 + (x >= size / 2));
  return region;
}

SequenceImages two_images(int size) {
  const Tensor pixels = checks::pixels_of(checks::noise_images(2, size, 3));
  return {pixels, torch::zeros_like(pixels), quarters(size), torch::zeros({2}, torch::kInt64)};
}

TEST(SequenceProbabilities, AreThoseOfTheImagesWrittenOut) {
  LinearToy target(8);
  const auto images = two_images(8);
  const Tensor masks = torch::rand({2, 11, 4});
  const auto found = sequence_probabilities(target, images, masks);
  const Tensor m = masks.index_select(2, images.region.flatten().to(torch::kInt64)).view({2, 11, 1, 8, 8});
  const auto probability = [&](const Tensor& keep) {
    const Tensor x = (keep * images.pixels.unsqueeze(1)).flatten(0, 1);
    return torch::softmax(target.logits(x), 1).select(1, 0).view({2, 11});
  };
  EXPECT_TRUE(torch::allclose(found.deletion, probability(1 - m), 0, 1e-6));
  EXPECT_TRUE(torch::allclose(found.insertion, probability(m), 0, 1e-6));
}

TEST(SequenceProbabilities, HaveTheDerivativeOfTheLinearClassifier) {
  LinearToy target(8);
  const auto images = two_images(8);
  const Tensor masks = torch::rand({2, 11, 4}).requires_grad_(true);
  const auto found = sequence_probabilities(target, images, masks);
  const Tensor weights = torch::rand({2, 11});
  const Tensor gradient =
      torch::autograd::grad({(found.insertion * weights).sum()}, {masks})[0];  // (2, 11, 4)

  const Tensor importance = target.importance(images.pixels).flatten(1);  // (2, 64)
  Tensor of_region = torch::zeros({2, 4});
  of_region.index_add_(1, images.region.flatten().to(torch::kInt64), importance);
  const Tensor p = found.insertion.detach();
  const Tensor expected = (weights * p * (1 - p) * 20).unsqueeze(2) * of_region.unsqueeze(1) / 64;
  EXPECT_TRUE(torch::allclose(gradient, expected, 1e-4, 1e-6));
}

TEST(SequenceProbabilities, GiveTheSameBitsForAnyNumberOfThreads) {
  PlantedToy target(16);
  const auto planted = checks::planted_images(3, 16, 5);
  const Tensor pixels = checks::pixels_of(planted.data);
  const SequenceImages images{pixels, torch::zeros_like(pixels), quarters(16),
                              torch::tensor({0, 1, 2}, torch::kInt64)};
  const Tensor masks = torch::rand({3, 16, 4}).requires_grad_(true);
  std::vector<Tensor> gradients;
  for (const int count : {1, 2, 3}) {
    set_threads(count);
    gradients.push_back(
        torch::autograd::grad({sequence_probabilities(target, images, masks).deletion.sum()}, {masks})[0]);
  }
  set_threads(0);
  EXPECT_TRUE(torch::equal(gradients[0], gradients[1]));
  EXPECT_TRUE(torch::equal(gradients[0], gradients[2]));
}

TEST(Terms, SmoothnessIgnoresSlopesAndSeesPeaks) {
  // On a slope of 1 a pixel only the repeated edges differ from the mean of their neighbors, by 1/3 on two of
  // nine columns.
  const Tensor slope = torch::arange(9, torch::kFloat32).view({1, 1, 9}).expand({1, 9, 9}).contiguous();
  EXPECT_NEAR(smoothness_term(slope).item<double>(), 2.0 / 9 / 9, 1e-6);
  Tensor peak = torch::zeros({1, 9, 9});
  peak[0][4][4] = 9;
  // 9 - 1 at the peak, -1 at its eight neighbors.
  EXPECT_NEAR(smoothness_term(peak).item<double>(), (64 + 8) / 81.0, 1e-6);
}

TEST(DrawStep, IsAPureFunctionOfItsPlace) {
  ObjectiveOptions options;
  options.noise = 1, options.noise_final = 0;
  options.tau_final = 0.25;
  const StepPlace place{7, 11, 1, 4, 0.5};
  const auto a = draw_step(options, place, 4, 32, 32), b = draw_step(options, place, 4, 32, 32);
  EXPECT_EQ(a.ks, b.ks);
  EXPECT_EQ(a.references, b.references);
  EXPECT_TRUE(torch::equal(a.grid.region_of_pixel(), b.grid.region_of_pixel()));
  EXPECT_DOUBLE_EQ(a.sort.tau, 0.5);
  EXPECT_DOUBLE_EQ(a.sort.noise, 0.5);
  // Image 2 of this group is image 0 of a group that begins two places later.
  const auto later = draw_step(options, {7, 11, 9, 6, 0.5}, 2, 32, 32);
  EXPECT_EQ(later.references[0][0], a.references[0][2]);
}

TEST(DrawStep, ASingleTauOrNoiseHoldsForTheWholeRun) {
  ObjectiveOptions options;
  set_all_from_spec(fields(options), "tau=0.5:noise=0.25", "--");
  for (const double progress : {0.0, 0.3, 1.0}) {
    const auto step = draw_step(options, {7, 11, 1, 4, progress}, 1, 32, 32);
    EXPECT_DOUBLE_EQ(step.sort.tau, 0.5) << progress;
    EXPECT_DOUBLE_EQ(step.sort.noise, 0.25) << progress;
  }
  set_all_from_spec(fields(options), "tau-final=0.125:noise-final=0", "--");
  const auto last = draw_step(options, {7, 11, 1, 4, 1.0}, 1, 32, 32);
  EXPECT_DOUBLE_EQ(last.sort.tau, 0.125);
  EXPECT_DOUBLE_EQ(last.sort.noise, 0);
  options.tau_final = 0;
  EXPECT_THROW(check_options(options), Error);
}

TEST(DrawStep, RefusesGridsThatEndBeforeTheyBegin) {
  ObjectiveOptions options;
  options.grid_low = 9, options.grid_high = 8;
  EXPECT_THROW(draw_step(options, {}, 1, 32, 32), Error);
}

TEST(Objective, OrdersAFreeMapLikeTheLinearClassifierDoes) {
  constexpr int kSize = 12;
  LinearToy target(kSize);
  const Tensor pixels = checks::pixels_of(checks::noise_images(1, kSize, 9));
  const ObjectiveImages images{pixels, torch::zeros({1}, torch::kInt64)};
  ObjectiveOptions options;
  options.grid_low = options.grid_high = 6;
  options.grid_offsets = false;
  options.references = {"black"};
  options.lambda_smoothness = 0;  // the truth is noise
  Tensor map = torch::zeros({1, kSize, kSize}).requires_grad_(true);
  torch::optim::Adam optimizer({map}, torch::optim::AdamOptions(1));
  Context context;
  constexpr int kSteps = 200;
  for (int step = 0; step < kSteps; ++step) {
    static_cast<torch::optim::AdamOptions&>(optimizer.param_groups()[0].options())
        .lr(1 - step / double{kSteps});
    optimizer.zero_grad();
    const auto drawn = draw_step(options, {1, step, 0, 0, 1}, 1, kSize, kSize);
    objective(target, map, images, drawn, options, context).loss.backward();
    optimizer.step();
  }
  EXPECT_GT(rank_correlation(checks::doubles(map), checks::doubles(target.importance(pixels))), 0.95);
}

Explainer pixel_explainer(Classifier& target) {
  DecoderOptions decoder{.widths = {3},
                         .scales = {1},
                         .classes = 3,
                         .embedding = 4,
                         .channels = 8,
                         .top = 8,
                         .head = 8,
                         .last_up = 1};
  torch::manual_seed(1);
  Explainer explainer(encoder_from_target(target, {"pixels"}), decoder);
  explainer.decoder()->eval();
  return explainer;
}

TEST(Refine, LeavesTheExplainerAsItWas) {
  PlantedToy target(16);
  Explainer explainer = pixel_explainer(target);
  const auto planted = checks::planted_images(2, 16, 5);
  const Tensor pixels = checks::pixels_of(planted.data),
               classes = torch::tensor({planted.data.labels[0], planted.data.labels[1]}, torch::kInt64);
  const Tensor before = explainer.map(pixels, classes).detach();
  RefineOptions options;
  options.steps = 2;
  options.guard = false;
  options.objective.grid_low = 4, options.objective.grid_high = 8, options.objective.steps = 4;
  options.objective.reference_choice = "all";
  const auto refined = refined_maps(target, explainer, pixels, classes, options, {});
  EXPECT_EQ(refined.steps, (std::vector<int>{2, 2}));
  EXPECT_FALSE(torch::equal(refined.maps, before));
  EXPECT_TRUE(torch::equal(explainer.map(pixels, classes).detach(), before));
}

TEST(Refine, FindsPlantedEvidenceFromAnUntrainedHead) {
  constexpr int kSize = 24;
  PlantedToy target(kSize);
  DecoderOptions decoder{.widths = {3},
                         .scales = {1},
                         .classes = 3,
                         .embedding = 8,
                         .channels = 16,
                         .top = 16,
                         .head = 16,
                         .last_up = 1,
                         .padding = "replicate"};
  torch::manual_seed(1);
  Explainer explainer(encoder_from_target(target, {"pixels"}), decoder);
  explainer.decoder()->eval();
  const auto planted = checks::planted_images(3, kSize, 5);
  const Tensor pixels = checks::pixels_of(planted.data);
  const Tensor classes =
      torch::tensor({planted.data.labels[0], planted.data.labels[1], planted.data.labels[2]}, torch::kInt64);
  RefineOptions options;
  options.steps = 60;
  options.lr = 5e-3;
  options.residual.grid = kSize;
  options.objective.steps = 8;
  options.objective.grid_low = 6, options.objective.grid_high = 12;
  options.objective.reference_choice = "all";
  for (const std::string form : {"head", "map"}) {
    options.form = form;
    const auto maps = refined_maps(target, explainer, pixels, classes, options, {}).maps;
    double share = 0;
    for (size_t i = 0; i < 3; ++i)
      share += checks::top_share(maps[static_cast<int64_t>(i)], planted.corner[i]) / 3;
    EXPECT_GE(share, 0.9) << form;
  }
}

const std::vector<std::string> kForms = {"head", "map", "head-then-map"};

// The paper's form, step by step, as a program of its own.
TEST(Refine, OfTheHeadTakesThePapersStepsBitForBit) {
  PlantedToy target(16);
  Explainer explainer = pixel_explainer(target);
  const Tensor pixels = checks::pixels_of(checks::planted_images(1, 16, 5).data),
               classes = torch::zeros({1}, torch::kInt64);
  RefineOptions options;
  options.steps = 3;
  options.lr = 1e-2;
  options.guard = false;
  options.objective.grid_low = 4, options.objective.grid_high = 8, options.objective.steps = 4;
  options.objective.reference_choice = "all";
  const auto found = refined_maps(target, explainer, pixels, classes, options, {});

  const OneThread one_thread;
  const Features features = explainer.features(pixels, classes);
  const auto head = explainer.decoder_copy();
  for (auto& parameter : head->parameters()) parameter.requires_grad_(true);
  torch::optim::AdamW optimizer(head->parameters(), torch::optim::AdamWOptions(1e-2).weight_decay(1e-3));
  const auto map = [&] { return head->forward(features.levels, classes, 16, 16); };
  for (int t = 0; t < 3; ++t) {
    optimizer.zero_grad();
    const auto drawn = draw_step(options.objective, {0, t, 0, 0, 1}, 1, 16, 16);
    objective(target, map(), {pixels, classes}, drawn, options.objective, {}).loss.backward();
    torch::nn::utils::clip_grad_norm_(head->parameters(), 1);
    optimizer.step();
  }
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::equal(found.maps, map()));
}

TEST(Refine, OfAnyFormBeginsAsTheExplainersMapAndLeavesTheExplainerAlone) {
  PlantedToy target(16);
  Explainer explainer = pixel_explainer(target);
  const auto planted = checks::planted_images(3, 16, 5);
  const Tensor pixels = checks::pixels_of(planted.data),
               classes = torch::tensor(planted.data.labels).to(torch::kInt64);
  RefineOptions options;
  options.steps = 0;
  const Tensor own = refined_maps(target, explainer, pixels, classes, options, {}).maps;
  options.steps = 4;
  options.lr = 1e-2;
  options.head_steps = 2;
  options.guard = false;
  options.snapshots = {0, 1, 2, 3};
  options.objective.grid_low = 4, options.objective.grid_high = 8, options.objective.steps = 4;
  options.objective.reference_choice = "all";
  std::map<std::string, Refined> found;
  for (const auto& form : kForms) {
    options.form = form;
    found[form] = refined_maps(target, explainer, pixels, classes, options, {});
    EXPECT_EQ(found[form].steps, (std::vector<int>{4, 4, 4})) << form;
    EXPECT_TRUE(torch::equal(found[form].snapshots[0], own)) << form;
    EXPECT_FALSE(torch::equal(found[form].maps, found[form].snapshots[3])) << form;
    RefineOptions none = options;
    none.steps = 0;
    none.snapshots.clear();
    EXPECT_TRUE(torch::equal(refined_maps(target, explainer, pixels, classes, none, {}).maps, own)) << form;
  }
  // head-then-map is the one, then the other.
  EXPECT_TRUE(torch::equal(found["head-then-map"].snapshots[2], found["head"].snapshots[2]));
  EXPECT_FALSE(torch::equal(found["head-then-map"].snapshots[3], found["head"].snapshots[3]));
  const Tensor added = found["map"].maps - own;
  EXPECT_LE(added.abs().max().item<double>(), 4.001 * options.residual.lr)
      << "Adam moves by lr a step at most";
}

// A step asks the target as much, whatever the number of moves.
TEST(Refine, MovesOfAStepShareItsPerturbedImages) {
  struct Counting : PlantedToy {
    using PlantedToy::PlantedToy;
    PerturbedScores perturbed_scores(const PerturbedImages& images, bool with_gradient) override {
      calls += 1, questions += images.keep.size(0) * images.keep.size(1);
      return PlantedToy::perturbed_scores(images, with_gradient);
    }
    int64_t calls = 0, questions = 0;
  } target(16);
  Explainer explainer = pixel_explainer(target);
  const Tensor pixels = checks::pixels_of(checks::planted_images(1, 16, 5).data),
               classes = torch::zeros({1}, torch::kInt64);
  RefineOptions options;
  options.steps = 2;
  options.form = "map";
  options.guard = false;
  options.objective.grid_low = 4, options.objective.grid_high = 8, options.objective.steps = 5;
  options.objective.reference_choice = "all";
  for (const bool spread : {false, true})
    for (const auto& [moves, calls] : std::map<int, int>{{1, 2}, {2, 4}, {5, 10}, {99, 10}}) {
      target.calls = target.questions = 0;
      options.moves = moves;
      options.objective.spread_ks = spread;
      refined_maps(target, explainer, pixels, classes, options, {});
      EXPECT_EQ(target.calls, calls);
      EXPECT_EQ(target.questions, 2 * 2 * 3 * 5);
    }
}

TEST(Guard, ScoresAMapByTheImagesWrittenOut) {
  LinearToy target(8);
  const Tensor pixels = checks::pixels_of(checks::noise_images(1, 8, 3)), map = torch::rand({1, 8, 8});
  ObjectiveOptions options;
  options.references = {"black"};
  const Tensor order = map.flatten().argsort(0, /*descending=*/true);
  const auto probability = [&](const Tensor& kept) {
    Tensor keep = torch::zeros({64});
    keep.index_fill_(0, kept, 1);
    return torch::softmax(target.logits(pixels * keep.view({1, 1, 8, 8})), 1)[0][1].item<double>();
  };
  double expected = 0;
  for (const int64_t removed : {12, 25, 38, 51})  // fifths of 64, rounded down
    expected += (probability(order.slice(0, 0, 64 - removed)) - probability(order.slice(0, removed))) / 4;
  EXPECT_NEAR(hard_ins_del(target, map, {pixels, torch::tensor({int64_t{1}})}, options), expected, 1e-6);
}

// Steps of very different sizes: some help, some harm.
TEST(Guard, KeepsTheBetterOfTheRefinedMapAndTheExplainersOwn) {
  PlantedToy target(16);
  Explainer explainer = pixel_explainer(target);
  const auto planted = checks::planted_images(6, 16, 5);
  const Tensor pixels = checks::pixels_of(planted.data),
               classes = torch::tensor(planted.data.labels).to(torch::kInt64);
  RefineOptions options;
  options.steps = 0;
  const Tensor own = refined_maps(target, explainer, pixels, classes, options, {}).maps;
  options.steps = 3;
  options.snapshots = {0, 1};
  options.objective.grid_low = 4, options.objective.grid_high = 8, options.objective.steps = 4;
  options.objective.reference_choice = "all";
  int kept_own = 0, kept_refined = 0;
  for (const auto& [form, lr] :
       std::vector<std::pair<std::string, double>>{{"head", 1e-2}, {"head", 1.0}, {"map", 30}}) {
    options.form = form;
    options.lr = options.residual.lr = lr;
    options.guard = false;
    const auto plain = refined_maps(target, explainer, pixels, classes, options, {});
    options.guard = true;
    for (const int count : {1, 2, 8}) {  // one after the other, and side by side
      set_threads(count);
      const auto guarded = refined_maps(target, explainer, pixels, classes, options, {});
      EXPECT_EQ(guarded.steps, plain.steps);
      EXPECT_TRUE(torch::equal(guarded.snapshots[0], own));
      for (int64_t b = 0; b < 6; ++b) {
        const ObjectiveImages image{pixels.narrow(0, b, 1), classes.narrow(0, b, 1)};
        const auto score = [&](const Tensor& maps) {
          return hard_ins_del(target, maps.narrow(0, b, 1), image, options.objective);
        };
        const bool refined_is_better = score(plain.maps) > score(own) + kGuardMargin;
        EXPECT_TRUE(torch::equal(guarded.maps[b], (refined_is_better ? plain.maps : own)[b])) << b;
        EXPECT_EQ(guarded.unrefined[b], refined_is_better ? 0 : 1);
        EXPECT_TRUE(torch::equal(
            guarded.snapshots[1][b],
            (score(plain.snapshots[1]) > score(own) + kGuardMargin ? plain.snapshots[1] : own)[b]));
        (refined_is_better ? kept_refined : kept_own) += 1;
        const auto alone = refined_maps(target, explainer, image.pixels, image.classes, options, {});
        EXPECT_TRUE(torch::equal(alone.maps[0], guarded.maps[b]));
      }
    }
  }
  set_threads(0);
  EXPECT_GT(kept_own, 0);
  EXPECT_GT(kept_refined, 0);
}

// Every question takes 10 ms, so a step does, too: of 100 ms no more than ten steps can be made.
TEST(Refine, StopsWhenItsTimeIsOver) {
  struct Slow : PlantedToy {
    using PlantedToy::PlantedToy;
    Tensor logits(const Tensor& pixels, Taps* taps) override {
      std::this_thread::sleep_for(std::chrono::microseconds(500) * pixels.size(0));
      return PlantedToy::logits(pixels, taps);
    }
  } target(16);
  Explainer explainer = pixel_explainer(target);
  const Tensor pixels = checks::pixels_of(checks::planted_images(1, 16, 5).data),
               classes = torch::zeros({1}, torch::kInt64);
  RefineOptions options;
  options.steps = 20;
  options.objective.steps = 1;
  options.objective.grid_low = options.objective.grid_high = 4;
  EXPECT_EQ(refined_maps(target, explainer, pixels, classes, options, {}).steps[0], 20)
      << "no budget, no end before the last step";
  options.steps = 1000;
  options.budget_ms = 1000;
  const auto refined = refined_maps(target, explainer, pixels, classes, options, {});
  EXPECT_GE(refined.steps[0], 1);
  EXPECT_LE(refined.steps[0], 667) << "a step is six images of half a millisecond, on a few threads";
  EXPECT_TRUE(std::isfinite(refined.loss[0]));
  EXPECT_EQ(refined.failed[0], "") << "an end of time is no failure";
}

// The first step is begun if and only if it is expected to end in time, the guard's looks included.
TEST(Refine, BeginsNoStepThatWouldEndTooLate) {
  struct Slow : PlantedToy {
    using PlantedToy::PlantedToy;
    Tensor logits(const Tensor& pixels, Taps* taps) override {
      std::this_thread::sleep_for(std::chrono::microseconds(500) * pixels.size(0));
      return PlantedToy::logits(pixels, taps);
    }
  } target(16);
  Explainer explainer = pixel_explainer(target);
  const Tensor pixels = checks::pixels_of(checks::planted_images(1, 16, 5).data),
               classes = torch::zeros({1}, torch::kInt64);
  RefineOptions options;
  options.steps = 1;
  options.objective.steps = 1;
  options.objective.grid_low = options.objective.grid_high = 4;
  for (const double budget : {0.01, 1.0, 5.0, 20.0, 60.0, 1e6}) {
    options.budget_ms = budget;
    const auto refined = refined_maps(target, explainer, pixels, classes, options, {});
    EXPECT_EQ(refined.steps[0] > 0, refined.first_step_ms[0] <= budget) << budget;
    EXPECT_GT(refined.first_step_ms[0], 0.5) << "the question that it is estimated from takes as long";
    EXPECT_EQ(refined.failed[0], "") << "an end of time is no failure";
    if (budget < 0.1) EXPECT_EQ(refined.steps[0], 0);
    if (budget > 1e5) EXPECT_EQ(refined.steps[0], 1);
  }
}

// NaN where an image is nearly white everywhere; white stays white under a blurred reference.
struct AfraidOfWhite : PlantedToy {
  using PlantedToy::PlantedToy;
  Tensor logits(const Tensor& pixels, Taps* taps) override {
    return PlantedToy::logits(pixels, taps) +
           torch::where(pixels.mean({1, 2, 3}) > 0.9, std::nan(""), 0.0).unsqueeze(1);
  }
};

TEST(Refine, OneImageThatDivergesLeavesTheOthersAlone) {
  AfraidOfWhite target(16);
  Explainer explainer = pixel_explainer(target);
  const auto planted = checks::planted_images(4, 16, 5);
  Tensor pixels = checks::pixels_of(planted.data);
  const Tensor classes = torch::zeros({4}, torch::kInt64);
  pixels[1].fill_(1);                 // its loss is NaN
  pixels[2][0][3][3] = std::nan("");  // its map is NaN
  RefineOptions options;
  options.steps = 2;
  options.snapshots = {0, 1};
  options.objective.grid_low = options.objective.grid_high = 4, options.objective.steps = 4;
  options.objective.reference_choice = "all";
  for (const auto& [form, count] : std::vector<std::pair<std::string, int>>{
           {"head", 1}, {"head", 2}, {"head", 8}, {"map", 1}, {"map", 8}}) {  // in turn, and side by side
    options.form = form;
    set_threads(count);
    const auto refined = refined_maps(target, explainer, pixels, classes, options, {});
    EXPECT_EQ(refined.steps, (std::vector<int>{2, 0, 0, 2}));
    EXPECT_EQ(refined.failed[0] + refined.failed[3], "");
    EXPECT_NE(refined.failed[1].find("loss"), std::string::npos) << refined.failed[1];
    EXPECT_NE(refined.failed[2].find("map"), std::string::npos) << refined.failed[2];
    EXPECT_TRUE(std::isfinite(refined.loss[0]) && !std::isfinite(refined.loss[1]));
    EXPECT_TRUE(refined.maps.narrow(0, 1, 2).isnan().all().item<bool>()) << "a failed image has no map";
    EXPECT_TRUE(torch::isfinite(refined.snapshots[0][1]).all().item<bool>()) << "before it failed it had one";
    EXPECT_TRUE(refined.snapshots[1][1].isnan().all().item<bool>());
    for (const int64_t b : {0, 3}) {
      const auto alone =
          refined_maps(target, explainer, pixels.narrow(0, b, 1), classes.narrow(0, b, 1), options, {});
      EXPECT_TRUE(torch::equal(alone.maps[0], refined.maps[b]));
      EXPECT_TRUE(torch::equal(alone.snapshots[1][0], refined.snapshots[1][b]));
    }
  }
  set_threads(0);
  options.steps = 0;
  options.snapshots.clear();
  const auto plain = refined_maps(target, explainer, pixels, classes, options, {});
  EXPECT_EQ(plain.failed[1], "");
  EXPECT_NE(plain.failed[2], "");
}

}  // namespace
}  // namespace aha
