#include "aha/networks/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/kernels/sets/sets_under_test.h"
#include "aha/networks/catalog.h"
#include "aha/networks/network_classifier.h"
#include "aha/nn/module_state.h"
#include "aha/testing/checks.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::relative;

ResNetConfig small_resnet(bool bottleneck) {
  ResNetConfig c;
  c.image_size = 32, c.bottleneck = bottleneck, c.depths = {1, 2}, c.widths = {8, 16}, c.classes = 5;
  return c;
}

// No BatchNorm is the identity, no block begins as one.
ResNet random_resnet(const ResNetConfig& config) {
  ResNet network(config);
  network->initialize(1);
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  for (auto& item : network->named_parameters())
    if (item.value().dim() == 1) item.value().copy_(torch::rand_like(item.value()) + 0.5);
  for (auto& item : network->named_buffers()) item.value().copy_(torch::rand_like(item.value()) + 0.5);
  network->fc->weight.normal_();
  freeze(*network);
  return network;
}

ClassifierInfo info_of(const ResNetConfig& config) {
  ClassifierInfo info;
  info.name = "resnet";
  info.input.size = config.image_size;
  return info;
}

TEST(ResNet, FoldsItsBatchNormsWithoutChangingTheFunction) {
  for (const bool bottleneck : {false, true})
    for (const int kernel : {3, 7}) {
      auto config = small_resnet(bottleneck);
      config.stem_kernel = kernel;
      if (kernel == 7) config.conv_bias = config.stride_first = true, config.eps = 1e-3;
      auto network = random_resnet(config);
      NetworkClassifier plain(network, info_of(config)), fast(network, info_of(config), Precision::kF32);
      ASSERT_FALSE(plain.engine_memory());
      ASSERT_TRUE(fast.engine_memory());
      const Tensor pixels = torch::rand({3, 3, 32, 32});
      EXPECT_LT(relative(fast.logits(pixels), plain.logits(pixels)), 1e-5);
      EXPECT_FALSE(fast.logits(pixels).equal(plain.logits(pixels))) << "the engine did not run";
      const auto gradient = [&](Classifier& classifier) {
        const Tensor x = pixels.clone().requires_grad_();
        return torch::autograd::grad({classifier.logits(x).select(1, 2).sum()}, {x})[0];
      };
      EXPECT_LT(relative(gradient(fast), gradient(plain)), 1e-4);
      const auto names = plain.tap_names();
      const auto expected = plain.features(pixels, names), found = fast.features(pixels, names);
      for (size_t i = 0; i < names.size(); ++i) EXPECT_LT(relative(found[i], expected[i]), 1e-5) << names[i];
      EXPECT_TRUE(found.back().equal(found[found.size() - 2]));  // features = the last stage
    }
}

void expect_same_bits(const ResNetConfig& config, Precision precision, int64_t images) {
  NetworkClassifier fast(random_resnet(config), info_of(config), precision);
  const Tensor pixels = torch::rand({images, 3, config.image_size, config.image_size});
  Tensor first, first_stage;
  for (const int count : {1, 2, 3, 4}) {
    Context context;
    context.threads = count;
    start_compute(context);
    const Tensor logits = fast.logits(pixels), stage = fast.features(pixels, {"stage.1"})[0];
    if (count == 1) first = logits, first_stage = stage;
    EXPECT_TRUE(logits.equal(first));
    EXPECT_TRUE(stage.equal(first_stage));
    const Tensor one = pixels.narrow(0, images / 2, 1);
    EXPECT_TRUE(fast.logits(one).equal(first.narrow(0, images / 2, 1))) << count << " threads";
    EXPECT_TRUE(fast.features(one, {"stage.1"})[0].equal(first_stage.narrow(0, images / 2, 1)));
  }
  start_compute({});
}

TEST(ResNet, GivesTheSameBitsInAnyBatchAndForAnyNumberOfThreads) {
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    expect_same_bits(small_resnet(true), precision, 5);
    // The widths of the public ones, whose convolutions are large enough for several threads.
    for (const bool bottleneck : {false, true}) {
      auto config = small_resnet(bottleneck);
      config.image_size = 96, config.stem_kernel = 7;
      config.depths = {1, 1, 1, 1}, config.widths = {64, 128, 256, 512}, config.classes = 1000;
      expect_same_bits(config, precision, 2);
    }
  }
}

TEST(ResNet, Bf16IsCloseToFloat32) {
  const auto config = small_resnet(true);
  const auto network = random_resnet(config);
  NetworkClassifier exact(network, info_of(config), Precision::kF32),
      rounded(network, info_of(config), Precision::kBf16);
  const Tensor pixels = torch::rand({3, 3, 32, 32});
  const Tensor expected = exact.logits(pixels), found = rounded.logits(pixels);
  if (best_kernel_set(Precision::kBf16).isa != Isa::kAvx512Bf16) {
    EXPECT_TRUE(found.equal(expected));
    GTEST_SKIP() << "bf16 runs in float32 here";
  }
  EXPECT_FALSE(found.equal(expected));
  // Three blocks of three convolutions, two of them with a convolution beside, and a sum each.
  EXPECT_LT(relative(found, expected), checks::chain_bound(Format::kBf16, 3 * 4 + 2));
}

TEST(ResNet, HasTheTapsOfItsStages) {
  auto network = random_resnet(small_resnet(true));
  EXPECT_EQ(network->tap_names(),
            (std::vector<std::string>{"stem", "stage.0.block.0", "stage.0", "stage.1.block.0",
                                      "stage.1.block.1", "stage.1", "features"}));
  Taps taps({"stem", "stage.0", "features"});
  network->forward(torch::rand({2, 3, 32, 32}), &taps);
  EXPECT_EQ(taps.at("stem").sizes(), (std::vector<int64_t>{2, 8, 8, 8}));
  EXPECT_EQ(taps.at("stage.0").sizes(), (std::vector<int64_t>{2, 32, 8, 8}));
  EXPECT_EQ(taps.at("features").sizes(), (std::vector<int64_t>{2, 64, 4, 4}));
}

TEST(ResNet, ReadsItsSizesFromPublicWeights) {
  for (const bool bottleneck : {false, true}) {
    auto config = small_resnet(bottleneck);
    config.stem_kernel = 7;
    auto network = random_resnet(config);
    auto table = table_from_state(*network);
    for (const auto& name : table.names())  // torchvision's and timm's files count batches; older ones do not
      if (name.ends_with("running_mean")) {
        const auto count = name.substr(0, name.rfind('.')) + ".num_batches_tracked";
        table.tensors["module." + count] = view_from_tensor(torch::zeros({}, torch::kInt64));
      }
    const auto weights = canonical_weights(table);
    EXPECT_EQ(weights.family, "resnet");
    const auto& family = family_of(weights);
    auto known = json_from_config(config);
    EXPECT_EQ(family.config_from_weights(weights, known), known);
    const auto again = family.make(known, "test");
    again->load_weights(weights.table);
    const Tensor x = torch::rand({1, 3, 32, 32});
    EXPECT_TRUE(again->forward(x).equal(network->forward(x)));
  }
  auto table = table_from_state(*random_resnet(small_resnet(false)));
  table.tensors["layer1.0.se.weight"] = view_from_floats({1}, {1.0f});
  EXPECT_THAT(checks::message_of([&] { canonical_weights(table); }),
              testing::HasSubstr("layer1.0.se.weight"));
}

TEST(ResNet, TheStrideOfABottleneckMayBeInItsFirstConvolution) {
  auto config = small_resnet(true);
  const auto strides = [&] {
    auto block = ResNet(config)->layers[1]->ptr<ResNetBlockImpl>(0);
    return std::pair{block->conv1->options.stride()->at(0), block->conv2->options.stride()->at(0)};
  };
  EXPECT_EQ(strides(), (std::pair<int64_t, int64_t>{1, 2}));
  config.stride_first = true;
  EXPECT_EQ(strides(), (std::pair<int64_t, int64_t>{2, 1}));
}

TEST(ResNet, IsOneOfTheKnownArchitectures) {
  const auto network =
      family_of(architecture_named("resnet50")).make(architecture_named("resnet50").config, "test");
  EXPECT_EQ(parameter_count(network->module()), 25557032);  // torchvision's
  const auto smaller =
      family_of(architecture_named("resnet18")).make(architecture_named("resnet18").config, "test");
  EXPECT_EQ(parameter_count(smaller->module()), 11689512);
  const auto weights = canonical_weights(table_from_state(smaller->module()));
  ASSERT_TRUE(fitting_architecture(weights));
  EXPECT_EQ(fitting_architecture(weights)->name, "resnet18");
  std::string why;
  config_as(architecture_named("resnet34"), weights, why);
  EXPECT_EQ(why, "depths 2,2,2,2 instead of 3,4,6,3");
  config_as(architecture_named("vit_b_16"), weights, why);
  EXPECT_EQ(why, "it holds a ResNet");
}

TEST(ResNet, IsATargetFromAModelDirectory) {
  const auto config = small_resnet(false);
  auto network = random_resnet(config);
  ModelCard card;
  card.input.size = card.input.resize = 32;
  const auto folder = checks::fresh_folder("models_resnet");
  save_classifier(folder, *network, card);
  const auto loaded = load_classifier(folder, {}, Context());
  const Tensor pixels = torch::rand({1, 3, 32, 32});
  EXPECT_LT(relative(loaded->logits(pixels), network->forward(normalized(pixels, card.input))), 1e-5);
  EXPECT_EQ(loaded->head_weights().sizes(), (std::vector<int64_t>{5, 16}));
}

}  // namespace
}  // namespace aha
