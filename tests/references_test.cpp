// Every verb hides pixels behind the same color: the mean color of the target's training images, whatever its
// normalization subtracts.
//
// The images are black and so are their blurred copies; a target that watches what it is asked then sees
// nothing but multiples of the mean reference.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/tensor/torch.h"

#include <mutex>

#include "aha/app/compare.h"
#include "aha/app/explain.h"
#include "aha/evaluate/evaluate.h"
#include "aha/image/png.h"
#include "aha/methods/catalog.h"
#include "aha/networks/catalog.h"
#include "aha/objective/refine.h"
#include "aha/testing/checks.h"
#include "aha/testing/toy_classifiers.h"
#include "aha/train/explainer_trainer.h"

namespace aha {
namespace {

constexpr int kSize = 16;

class WatchingToy : public checks::ToyClassifier {
 public:
  explicit WatchingToy(const ClassifierInfo& like) : ToyClassifier(kSize, 3, "watching toy") {
    info_.input.mean = like.input.mean;
    info_.input.std = like.input.std;
    info_.mean_color = like.mean_color;
  }

  // The brightest color asked for since the last call, and the largest difference of a pixel from a multiple
  // of the expected color.
  std::pair<double, double> brightest_and_strangest() {
    const std::lock_guard lock(guard_);
    const auto& color = info_.mean_color;
    double brightest = 0, strangest = 0;
    for (const Tensor& pixels : asked_) {
      const Tensor expected =
          torch::tensor({color[0], color[1], color[2]}, torch::kFloat32).view({1, 3, 1, 1});
      const Tensor share = pixels.narrow(1, 0, 1) / expected.narrow(1, 0, 1);  // (B, 1, H, W)
      brightest = std::max(brightest, share.max().item<double>());
      strangest = std::max(strangest, (pixels - share * expected).abs().max().item<double>());
    }
    asked_.clear();
    return {brightest, strangest};
  }

 private:
  Tensor answer(const Tensor& pixels) override {
    const std::lock_guard lock(guard_);
    asked_.push_back(pixels.detach().clone());
    return pixels.mean({2, 3});
  }
  std::mutex guard_;
  std::vector<Tensor> asked_;
};

ClassifierInfo half_normalized() {
  ClassifierInfo info;
  info.input.mean = info.input.std = {0.5, 0.5, 0.5};
  return info;
}

class ReferencesOf : public ::testing::TestWithParam<std::string> {
 protected:
  // The paper's ten-point rule ends at 90 % removed, insertion shows them from the other end; soft masks and
  // RISE's reach about 1.
  void expect_mean_color(const std::string& verb) {
    const auto [brightest, strangest] = target.brightest_and_strangest();
    EXPECT_GT(brightest, 0.6) << verb << " never showed the mean reference";
    EXPECT_LT(brightest, 1.0001) << verb << " showed a brighter color";
    EXPECT_LT(strangest, 1e-6) << verb << " showed another color";
  }

  const ClassifierInfo like =
      GetParam() == "half" ? half_normalized() : load_classifier(GetParam(), {}, Context())->info();
  WatchingToy target{like};
};
INSTANTIATE_TEST_SUITE_P(Targets, ReferencesOf,
                         ::testing::Values("half", "cifar10-convnext", "cifar10-vit4", "cifar10-vit8"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(ReferencesOf, AreTheSameForEveryVerb) {
  if (GetParam() == "half") {
    EXPECT_EQ(like.mean_color, (std::array<double, 3>{0.485, 0.456, 0.406})) << "ImageNet's";
  } else {
    EXPECT_EQ(like.mean_color, (std::array<double, 3>{0.4914, 0.4822, 0.4465}))
        << "CIFAR-10's, as the card says";
  }

  Context context;
  context.quiet = true;
  context.batch_size = 4;
  checks::MemoryDataset data;
  for (int i = 0; i < 20; ++i) data.images.emplace_back(kSize, kSize), data.labels.push_back(0);
  for (Image& image : data.images) std::fill(image.rgb.begin(), image.rgb.end(), uint8_t{0});

  ExplainerShape shape;
  shape.levels = {"pixels"};
  shape.channels = shape.top = shape.head = 4;
  shape.embedding = 4;
  LoadedExplainer loaded{make_explainer(target, shape, context), {}};
  ExplainerTrainOptions options;
  options.train.out = checks::fresh_path("references_train");
  options.train.max_steps = 2;
  options.search_images = 0;
  options.objective.grid_low = options.objective.grid_high = 4;
  target.brightest_and_strangest();
  WorkerGroup alone;
  const auto report = train_decoder(target, *loaded.explainer, data, options, {}, alone, context);
  expect_mean_color("train");
  loaded.card = explainer_card(target.info(), "memory", options, report, context);
  EXPECT_EQ(loaded.card.training["reference-values"]["mean"], nlohmann::json(like.mean_color))
      << "recorded in the card";

  const Tensor pixels = checks::pixels_of(data).narrow(0, 0, 2), classes = torch::zeros({2}, torch::kInt64);
  RefineOptions refine =
      refine_options_from_card(loaded.card.training, loaded.card.refinement, loaded.card.temperature);
  refine.steps = 2;
  refined_maps(target, *loaded.explainer, pixels, classes, refine, context);
  expect_mean_color("refinement");

  const MethodContext by{target, &loaded};
  const std::vector<uint64_t> streams = {1, 2};
  for (const std::string method : {"rise:masks=64", "ig:steps=4:baseline=mean", "occlusion"}) {
    const auto made = make_method(method, by);
    made->attribute(pixels, classes, streams, context);
    expect_mean_color(method);
  }

  const std::string folder = checks::fresh_folder("references_images"), file = folder + "/black.png";
  write_png(file, data.images[0]);
  ExplainOptions explain_options;
  explain_options.method = "random";
  nlohmann::json said;
  explain(
      by, {file}, explain_options, [&](const Explanation& e) { said = json_from(e); }, context);
  expect_mean_color("explain");
  EXPECT_EQ(said["references"]["mean"], nlohmann::json(like.mean_color)) << "recorded in the result";
  CompareOptions compare_options;
  compare_options.methods = {"random"};
  compare_options.out = folder;
  compare(
      by, {file}, compare_options, [&](const Compared& c) { said = json_from(c); }, context);
  expect_mean_color("compare");
  EXPECT_EQ(said["references"]["mean"], nlohmann::json(like.mean_color)) << "recorded in the result";

  EvaluateOptions evaluate_options;
  evaluate_options.methods = {"random"};
  evaluate_options.timing_runs = 0;
  const auto evaluated = evaluate(by, data, evaluate_options, checks::fresh_path("references_eval"), context);
  expect_mean_color("eval");
  EXPECT_EQ(evaluated.settings["references"]["mean"], nlohmann::json(like.mean_color))
      << "recorded in the result";
}

TEST(Protocols, AllOfThemAreUnderstoodAndLeaveTheMeanColorToTheTarget) {
  const auto names = protocol_names();
  EXPECT_THAT(names, ::testing::IsSupersetOf({"chefer", "equations", "mda", "paper", "rise"}));
  for (const auto& name : names) {
    const Protocol protocol = protocol_named(name);
    EXPECT_TRUE(protocol.reference.mean_color.empty()) << name;
  }
}

}  // namespace
}  // namespace aha
