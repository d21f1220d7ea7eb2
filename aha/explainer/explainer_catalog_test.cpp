#include "aha/explainer/explainer_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/networks/resnet.h"
#include "aha/testing/checks.h"
#include "aha/testing/tiny_networks.h"

namespace aha {
namespace {

using checks::fresh_folder;
using checks::message_of;
using testing::HasSubstr;
using testing_nets::convnext_of_two_blocks;
using testing_nets::vit_of_8_pixels;

ModelCard small_card() {
  ModelCard card;
  card.input.size = card.input.resize = 8;
  card.input.rule = ResizeRule::kStretch;
  card.input.crop = false;
  card.classes = {"red", "green", "blue"};
  card.provenance = {{"data", "none"}, {"seed", 1}, {"figures", {{"accuracy", 0.5}}}};
  return card;
}

TEST(ModelDirectory, GivesBackTheExplainerThatWasSaved) {
  const auto target_folder = fresh_folder("models_target"), folder = fresh_folder("models_explainer");
  auto network = vit_of_8_pixels();
  save_classifier(target_folder, *network, small_card());
  const auto target = load_classifier(target_folder, {}, Context());
  DecoderOptions options;
  options.widths = {8, 8};
  options.scales = {2, 1};
  options.classes = 3;
  options.embedding = 4;
  options.channels = options.top = options.head = 4;
  Explainer explainer(encoder_from_target(*target, {"block.0", "block.1"}), options);
  auto card = small_card();
  card.target = ModelCard::TargetPart{"tiny", "vit", target->info().sha256, {}};
  save_explainer(folder, explainer, card);

  const auto loaded = load_explainer(folder, target.get(), Context());
  explainer.decoder()->eval();
  const auto pixels = torch::rand({1, 3, 8, 8});
  EXPECT_TRUE(
      loaded.explainer->map(pixels, torch::tensor({1})).equal(explainer.map(pixels, torch::tensor({1}))));
  EXPECT_THAT(message_of([&] { load_explainer(folder, nullptr, Context()); }), HasSubstr("give the target"));
  EXPECT_THAT(message_of([&] { load_classifier(folder, {}, Context()); }), HasSubstr("found an explainer"));

  const auto other_folder = fresh_folder("models_other_target");
  auto other_network = vit_of_8_pixels();
  other_network->head->bias.fill_(1);
  save_classifier(other_folder, *other_network, small_card());
  const auto other = load_classifier(other_folder, {}, Context());
  EXPECT_THAT(message_of([&] { load_explainer(folder, other.get(), Context()); }),
              HasSubstr("trained on the activations of tiny"));
}

TEST(Encoder, ComesFromAnyModelDirectory) {
  const auto folder = fresh_folder("models_encoder"), other = fresh_folder("models_convnext_encoder");
  auto network = vit_of_8_pixels();
  save_classifier(folder, *network, small_card());
  auto encoder = load_encoder(folder, {{"block.1"}, true}, Context());
  EXPECT_EQ(encoder->features(torch::rand({1, 3, 8, 8}))[0].sizes(), (std::vector<int64_t>{1, 8, 2, 2}));
  auto convnext = convnext_of_two_blocks();
  auto card = small_card();
  card.input.size = card.input.resize = 16;
  save_classifier(other, *convnext, card);
  EXPECT_EQ(load_encoder(other, {}, Context())->info().levels,
            (std::vector<std::string>{"stage.0", "stage.1"}));
  EXPECT_THAT(message_of([&] { load_encoder(folder, {{"blok.1"}, true}, Context()); }), HasSubstr("blok.1"));
}

TEST(Encoder, MayBeAResNet) {
  ResNetConfig config;
  config.image_size = 16, config.depths = {1, 1}, config.widths = {8, 16}, config.classes = 3;
  ResNet network(config);
  network->initialize(1);
  auto card = small_card();
  card.input.size = card.input.resize = 16;
  const auto folder = fresh_folder("models_resnet_encoder");
  save_classifier(folder, *network, card);
  const auto encoder = load_encoder(folder, {}, Context());
  EXPECT_EQ(encoder->info().levels, (std::vector<std::string>{"stage.0", "stage.1"}));
  EXPECT_EQ(encoder->features(torch::rand({1, 3, 16, 16}))[1].sizes(), (std::vector<int64_t>{1, 16, 2, 2}));
}

TEST(Card, OfAnOlderExplainerStillSaysItsEncoder) {
  auto card = small_card();
  card.kind = "explainer";
  card.architecture = "dpt";
  card.encoder = ModelCard::EncoderPart{"dinov3_vits16", "11", {"block.0"}, true};
  card.target = ModelCard::TargetPart{"tiny", "vit", "11", {}};
  nlohmann::json old = json_from_card(card);
  old["encoder"].erase("architecture");
  old["encoder"]["model"] = "dinov3_vits16:/somewhere/dinov3.safetensors";
  EXPECT_EQ(card_from_json(old, "card").encoder->architecture, "dinov3_vits16");
}

}  // namespace
}  // namespace aha
