#include "aha/train/explainer_trainer.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include "aha/tensor/torch.h"

#include <filesystem>
#include <sstream>
#include <thread>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/parallel.h"
#include "aha/base/rank_correlation.h"
#include "aha/base/toml.h"
#include "aha/networks/resnet.h"
#include "aha/nn/module_state.h"
#include "aha/objective/refine.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_networks.h"
#include "aha/testing/toy_classifiers.h"
#include "aha/train/classifier_trainer.h"
#include "aha/weights/safetensors.h"

namespace aha {
namespace {

namespace fs = std::filesystem;
using checks::fresh_path;
using checks::LinearToy;
using checks::PlantedToy;

ExplainerShape pixel_shape(int channels) {
  ExplainerShape shape;
  shape.levels = {"pixels"};
  shape.channels = shape.top = shape.head = channels;
  shape.embedding = 8;
  return shape;
}

ExplainerTrainOptions quick_options(const std::string& out) {
  ExplainerTrainOptions options;
  options.train.out = out;
  options.train.epochs = 1000;
  options.train.validate_every = 1000;
  options.train.schedule.lr = 3e-3;
  options.objective.steps = 8;
  options.holdout = 4;
  options.search_images = 0;
  return options;
}

Context quiet() {
  Context context;
  context.quiet = true;
  context.batch_size = 8;
  return context;
}

TEST(ExplainerTrainer, RecoversTheOrderOfALinearClassifier) {
  constexpr int kSize = 16;
  LinearToy target(kSize);
  const auto data = checks::noise_images(200, kSize, 1), fresh = checks::noise_images(10, kSize, 2);
  auto options = quick_options(fresh_path("explainer_linear"));
  options.train.max_steps = 150;
  options.train.schedule.lr = 1e-2;
  options.objective.grid_low = 8;
  options.objective.grid_high = 16;
  options.objective.references = {"black"};
  options.objective.lambda_smoothness = 0;  // the truth is noise
  const Context context = quiet();
  const auto explainer = make_explainer(target, pixel_shape(16), context);
  WorkerGroup alone;
  train_decoder(target, *explainer, data, options, {}, alone, context);

  const torch::NoGradGuard no_grad;
  const Tensor pixels = checks::pixels_of(fresh), truth = target.importance(pixels);
  const Tensor maps = explainer->map(pixels, torch::zeros({10}, torch::kInt64));
  double correlation = 0;
  for (int64_t i = 0; i < 10; ++i)
    correlation += rank_correlation(checks::doubles(maps[i]), checks::doubles(truth[i])) / 10;
  EXPECT_GT(correlation, 0.95);
}

TEST(ExplainerTrainer, PutsItsTopMassOnPlantedEvidence) {
  constexpr int kSize = 24;
  PlantedToy target(kSize);
  const auto planted = checks::planted_images(200, kSize, 1), fresh = checks::planted_images(20, kSize, 2);
  auto options = quick_options(fresh_path("explainer_planted"));
  options.train.max_steps = 120;
  options.objective.grid_low = 6;
  options.objective.grid_high = 12;
  const Context context = quiet();
  const auto explainer = make_explainer(target, pixel_shape(16), context);
  WorkerGroup alone;
  const auto report = train_decoder(target, *explainer, planted.data, options, {}, alone, context);
  EXPECT_GT(report.train.best.at("ins-del"), 0.2);

  const torch::NoGradGuard no_grad;
  const Tensor maps =
      explainer->map(checks::pixels_of(fresh.data),
                     torch::tensor(std::vector<int64_t>(fresh.data.labels.begin(), fresh.data.labels.end())));
  double share = 0;
  for (int64_t i = 0; i < 20; ++i) share += checks::top_share(maps[i], fresh.corner[i]) / 20;
  EXPECT_GE(share, 0.9);
}

TEST(ExplainerTrainer, RefusesBatchesThatDoNotSplitIntoGroups) {
  PlantedToy target(24);
  const auto planted = checks::planted_images(20, 24, 1);
  auto options = quick_options(fresh_path("explainer_groups"));
  Context context = quiet();
  context.batch_size = 6;
  const auto explainer = make_explainer(target, pixel_shape(4), context);
  WorkerGroup alone;
  EXPECT_THROW(train_decoder(target, *explainer, planted.data, options, {}, alone, context), Error);
}

TEST(MakeExplainer, SaysWhichTapsATargetHas) {
  PlantedToy target(24);
  try {
    make_explainer(target, {}, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("pixels"), std::string::npos) << error.what();
  }
}

TEST(ExplainerTrainer, WhatKeepsFewImagesFromOverfitting) {
  PlantedToy target(12);
  const auto planted = checks::planted_images(60, 12, 1);
  const auto weights_after = [&](double view_area, bool learn, double dropout = 0, double cutmix = 0) {
    auto options = quick_options(fresh_path("explainer_views"));
    options.train.max_steps = 6;
    options.view_area = view_area;
    options.learn_embedding = learn;
    options.feature_dropout = dropout;
    options.cutmix_share = cutmix;
    const auto explainer = make_explainer(target, pixel_shape(4), quiet());
    const Tensor before = explainer->decoder()->class_embed->weight.detach().clone();
    const auto group = WorkerGroup::from_environment(60);
    train_decoder(target, *explainer, planted.data, options, {}, *group, quiet());
    EXPECT_EQ(torch::equal(explainer->decoder()->class_embed->weight, before), !learn);
    return explainer->decoder()->top->weight.detach().clone();
  };
  const Tensor views = weights_after(0.5, false);
  EXPECT_TRUE(torch::equal(views, weights_after(0.5, false)));
  EXPECT_FALSE(torch::equal(views, weights_after(1, false)));
  EXPECT_FALSE(torch::equal(views, weights_after(0.5, true)));
  EXPECT_FALSE(torch::equal(views, weights_after(0.5, false, 0.5)));
  EXPECT_TRUE(torch::equal(weights_after(0.5, false, 0.5), weights_after(0.5, false, 0.5)));
  EXPECT_FALSE(torch::equal(weights_after(1, false), weights_after(1, false, 0, 1)));
  EXPECT_TRUE(torch::equal(weights_after(1, false, 0, 1), weights_after(1, false, 0, 1)));
}

TEST(ExplainerTrainer, ALabelSaysNothingOfTwoImagesInOne) {
  PlantedToy target(12);
  const auto planted = checks::planted_images(60, 12, 1);
  auto options = quick_options(fresh_path("explainer_mixed_labels"));
  options.explained = "truth";
  options.cutmix_share = 0.5;
  const auto explainer = make_explainer(target, pixel_shape(4), quiet());
  const auto group = WorkerGroup::from_environment(60);
  EXPECT_THROW(train_decoder(target, *explainer, planted.data, options, {}, *group, quiet()), Error);
}

// ---- recipes

// A recipe as the command line reads it: the verb's own options and those of every command.
template <class Options>
Context read_recipe(const std::string& path, Options& options) {
  Context context;
  int batch_size = 0;
  int64_t seed = 0;
  Fields all = fields(options);
  all.add("batch-size", batch_size, "").add("seed", seed, "");
  set_all_from_json(all, json_from_toml(path), path);
  context.batch_size = batch_size;
  context.seed = static_cast<uint64_t>(seed);
  return context;
}

TEST(Recipes, AllOfThemAreUnderstood) {
  int trained = 0, fitted = 0;
  for (const auto& entry : fs::directory_iterator("recipes")) {
    if (!entry.is_regular_file()) continue;  // recipes/experiments has a test of its own
    const std::string path = entry.path().string();
    if (json_from_toml(path).contains("arch")) {
      FitOptions options;
      read_recipe(path, options);
      EXPECT_GT(options.train.epochs, 1) << path;
      ++fitted;
    } else {
      ExplainerRun run;
      const Context context = read_recipe(path, run);
      check_options(run.train.objective);
      EXPECT_EQ(context.batch_size % run.train.norm_group, 0) << path;
      ++trained;
    }
  }
  EXPECT_EQ(trained, 3);
  EXPECT_EQ(fitted, 3);
}

// Section 4.1 and appendix A of the paper, as the card of such a run says them.
TEST(Recipes, ThePapersGivesACardWithThePapersConstants) {
  ExplainerRun run;
  const Context context = read_recipe("recipes/paper.toml", run);
  // The networks are toys; everything that is a constant of the paper stays.
  PlantedToy target(24);
  const auto planted = checks::planted_images(30, 24, 1);
  run.train.train.out = fresh_path("explainer_paper");
  run.train.train.max_steps = 1;
  run.shape.levels = {"pixels"};
  run.shape.channels = run.shape.top = run.shape.head = 4;
  const auto explainer = make_explainer(target, run.shape, context);
  WorkerGroup alone;
  const auto report = train_decoder(target, *explainer, planted.data, run.train, {}, alone, context);
  const ModelCard card = explainer_card(target.info(), "memory", run.train, report, context);

  const nlohmann::json constants = {{"sinkhorn-iterations", 30},
                                    {"tau", 1.0},
                                    {"tau-final", 1.0},
                                    {"noise", 1.0},
                                    {"noise-final", 1.0},
                                    {"grid-low", 7},
                                    {"grid-high", 28},
                                    {"grid-offsets", true},
                                    {"perturbation-steps", 16},
                                    {"lambda-deletion", 1.0},
                                    {"lambda-insertion", 1.0},
                                    {"lambda-smoothness", 2.5e-3},
                                    {"optimizer", "adamw"},
                                    {"lr", 3e-4},
                                    {"weight-decay", 1e-3},
                                    {"clip", 1.0},
                                    {"schedule", "one-cycle"},
                                    {"epochs", 1},
                                    {"average", 0.0}};
  for (const auto& [name, value] : constants.items()) EXPECT_EQ(card.training.at(name), value) << name;
  EXPECT_EQ(card.temperature, 1);
  const RefineOptions refine = refine_options_from_card(card.training, card.refinement, card.temperature);
  EXPECT_EQ(refine.form, "head");
  EXPECT_EQ(refine.lr, 1e-4);
  EXPECT_FALSE(refine.guard);
  EXPECT_EQ(refine.objective.steps, 16);
  EXPECT_EQ(refine.objective.tau, 1);
  EXPECT_EQ(final_noise(refine.objective), 0);

  ExplainerRun recipe;
  read_recipe("recipes/paper.toml", recipe);
  EXPECT_EQ(recipe.shape.levels, (std::vector<std::string>{"block.4", "block.11", "block.17", "block.23"}));
  EXPECT_EQ(recipe.shape.channels, 256);
  EXPECT_EQ(recipe.shape.top, 128);
  EXPECT_EQ(recipe.shape.embedding, 1024);
}

TEST(ExplainerTrainer, LogsEachTermsShareAndSinkhornsResidual) {
  PlantedToy target(12);
  const auto planted = checks::planted_images(30, 12, 1);
  auto options = quick_options(fresh_path("explainer_shares"));
  options.train.max_steps = 2;
  options.train.log_every = 1;
  options.objective.lambda_smoothness = 0.5;
  options.objective.iterations = 3;  // not converged: the residual is not zero
  const auto explainer = make_explainer(target, pixel_shape(4), quiet());
  WorkerGroup alone;
  train_decoder(target, *explainer, planted.data, options, {}, alone, quiet());
  std::istringstream lines(read_file(options.train.out + "/log.jsonl"));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const auto means = nlohmann::json::parse(line).at("train");
  const double deletion = means.at("deletion"), insertion = means.at("insertion"),
               smoothness = means.at("smoothness");
  const double all = deletion + insertion + 0.5 * smoothness;
  EXPECT_NEAR(means.at("loss"), deletion - insertion + 0.5 * smoothness, 1e-6);
  EXPECT_NEAR(means.at("deletion_share"), deletion / all, 1e-6);
  EXPECT_NEAR(means.at("insertion_share"), insertion / all, 1e-6);
  EXPECT_NEAR(means.at("smoothness_share"), 0.5 * smoothness / all, 1e-6);
  EXPECT_GT(means.at("smoothness_share"), 0);
  EXPECT_GT(means.at("sinkhorn_residual"), 0);
}

// One run of 40 steps in six epochs, slow enough to be killed, as a program of its own: the tests below start
// it by this name.
constexpr const char* kRunOut = "AHA_TEST_EXPLAINER_OUT";
TEST(ExplainerTrainerRun, DISABLED_OneRun) {
  const char* out = std::getenv(kRunOut);
  ASSERT_NE(out, nullptr);
  struct Slow : PlantedToy {
    using PlantedToy::PlantedToy;
    Tensor logits(const Tensor& pixels, Taps* taps) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return PlantedToy::logits(pixels, taps);
    }
  } target(12);
  auto options = quick_options(out);
  options.train.max_steps = 40;
  options.train.checkpoint_every = 1;
  options.train.resume = true;
  options.objective.steps = 4;
  options.objective.grid_low = 3, options.objective.grid_high = 6;
  options.objective.noise = 1;
  options.view_area = 0.5;
  options.feature_dropout = 0.2;
  options.cutmix_share = 0.3;
  const auto planted = checks::planted_images(60, 12, 1);
  Context context = quiet();
  context.threads = 1;
  start_compute(context);
  const auto explainer = make_explainer(target, pixel_shape(4), context);
  const auto group = WorkerGroup::from_environment(60);
  const auto report = train_decoder(target, *explainer, planted.data, options, {}, *group, context);
  if (group->leader())
    save_explainer(out, *explainer, explainer_card(target.info(), "memory", options, report, context));
}

const std::vector<std::string> kRunArguments = {"--gtest_filter=ExplainerTrainerRun.DISABLED_OneRun",
                                                "--gtest_also_run_disabled_tests"};

pid_t start_run(const std::string& out) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(kRunOut, out.c_str(), 1);
    for (int fd : {STDOUT_FILENO, STDERR_FILENO}) close(fd);
    execl("/proc/self/exe", "train_test", kRunArguments[0].c_str(), kRunArguments[1].c_str(), nullptr);
    _exit(127);
  }
  return child;
}

void finish_run(const std::string& out) {
  int status = 0;
  waitpid(start_run(out), &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

double largest_difference(const std::string& a, const std::string& b) {
  const auto left = read_safetensors(a + "/model.safetensors"),
             right = read_safetensors(b + "/model.safetensors");
  double largest = 0;
  for (const auto& name : left.names()) {
    const Tensor difference = float_tensor_from_view(left.at(name)) - float_tensor_from_view(right.at(name));
    largest = std::max(largest, difference.abs().max().item<double>());
  }
  return largest;
}

TEST(ExplainerTrainer, EndsWithTheSameBitsAfterFiveKills) {
  const std::string whole = fresh_path("explainer_whole"), killed = fresh_path("explainer_killed");
  finish_run(whole);
  Rng rng(static_cast<uint64_t>(getpid()));
  const fs::path checkpoint = killed + "/checkpoint.safetensors";
  const auto age = [&] {
    std::error_code missing;
    return fs::last_write_time(checkpoint, missing);
  };
  for (int kills = 0; kills < 5; ++kills) {
    const auto before = age();
    const pid_t child = start_run(killed);
    // A new checkpoint says that it has begun to train; then a random moment of the next steps.
    for (int wait = 0; wait < 3000 && age() == before; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(rng.below(100)));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "ended before it was killed: the run is too short for this test";
  }
  finish_run(killed);
  EXPECT_EQ(largest_difference(whole, killed), 0);
}

TEST(ExplainerTrainer, TwoWorkersTrainWhatOneTrains) {
  const std::string one = fresh_path("explainer_one_worker"), two = fresh_path("explainer_two_workers");
  finish_run(one);
  setenv(kRunOut, two.c_str(), 1);
  run_workers(2, kRunArguments, quiet());
  unsetenv(kRunOut);
  EXPECT_LE(largest_difference(one, two), 1e-5);
}

TEST(ExplainerTrainer, ScalesShapeThePyramid) {
  PlantedToy target(24);
  ExplainerShape shape = pixel_shape(4);
  EXPECT_EQ(make_explainer(target, shape, quiet())->decoder()->options.scales, std::vector<int>{1});
  shape.scales = {-2};
  const auto explainer = make_explainer(target, shape, quiet());
  EXPECT_EQ(explainer->decoder()->options.scales, std::vector<int>{-2});
  EXPECT_EQ(explainer->decoder()->options.last_up, 2)
      << "half of the image's size is doubled before the head";
  explainer->decoder()->eval();
  EXPECT_EQ(explainer->map(torch::rand({2, 3, 24, 24}), torch::tensor({0, 1})).sizes(),
            (std::vector<int64_t>{2, 24, 24}));
  shape.scales = {1, 2};
  EXPECT_THROW(make_explainer(target, shape, quiet()), Error);
  shape.scales = {0};
  EXPECT_THROW(make_explainer(target, shape, quiet()), Error);
}

TEST(ExplainerTrainer, LearnsOnTheStagesOfAResNet) {
  ResNetConfig config;
  config.image_size = 16, config.stem_kernel = 3, config.depths = {1, 1}, config.widths = {8, 16},
  config.classes = 3;
  ResNet network(config);
  network->initialize(1);
  freeze(*network);
  ClassifierInfo info;
  info.name = info.architecture = "resnet";
  info.input.size = 16;
  NetworkClassifier target(network, info, Precision::kF32);
  ExplainerShape shape;
  shape.channels = shape.top = shape.head = 8;
  const auto explainer = make_explainer(target, shape, quiet());
  EXPECT_EQ(explainer->encoder().info().levels, (std::vector<std::string>{"stage.0", "stage.1"}));
  const auto data = checks::noise_images(24, 16, 3);
  auto options = quick_options(fresh_path("explainer_resnet"));
  options.train.max_steps = 2;
  options.objective.steps = 2, options.objective.grid_low = 2, options.objective.grid_high = 4;
  WorkerGroup alone;
  const auto report = train_decoder(target, *explainer, data, options, {}, alone, quiet());
  EXPECT_EQ(report.train.steps, 2);
}

// The promise of objective/refine.h on a real network.
TEST(Refine, GivesTheSameMapAloneInABatchAndForAnyNumberOfThreads) {
  ClassifierInfo info;
  info.name = info.architecture = "convnext";
  info.classes = 3;
  info.input.size = 16;
  ConvNextClassifier target(testing_nets::convnext_of_two_blocks(), info);
  ExplainerShape shape;
  shape.channels = shape.top = shape.head = 8;
  const auto explainer = make_explainer(target, shape, {});
  explainer->decoder()->eval();
  for (const auto& [form, steps] :
       std::vector<std::pair<std::string, int>>{{"head", 0}, {"head", 3}, {"map", 3}, {"head-then-map", 3}}) {
    // Without refinement images go in pieces: more than one piece, the last one of a single image.
    const int count_of_images = steps == 0 ? 33 : 7;
    const Tensor pixels = checks::pixels_of(checks::noise_images(count_of_images, 16, 3));
    const Tensor classes = torch::arange(count_of_images) % 3;
    RefineOptions options;
    options.steps = steps;
    options.form = form;
    options.head_steps = 1;
    options.moves = 2;
    options.lr = 3e-3;
    options.objective.spread_ks = form == "map";
    options.objective.steps = 5;
    options.objective.grid_low = 3, options.objective.grid_high = 6;
    options.objective.reference_choice = "all";
    Tensor first;
    for (const int count : {1, 2}) {
      Context context;
      context.threads = count;
      start_compute(context);
      const Tensor batch = refined_maps(target, *explainer, pixels, classes, options, context).maps;
      if (!first.defined()) first = batch;
      EXPECT_TRUE(torch::equal(batch, first)) << form << ", T = " << steps << ", " << count << " threads";
      for (const int64_t b : {0, 4, count_of_images - 1}) {
        const Tensor alone = refined_maps(target, *explainer, pixels.narrow(0, b, 1), classes.narrow(0, b, 1),
                                          options, context)
                                 .maps;
        EXPECT_TRUE(torch::equal(alone[0], first[b]))
            << form << ", T = " << steps << ", image " << b << ", " << count << " threads";
      }
    }
    start_compute({});
  }
}

}  // namespace
}  // namespace aha
