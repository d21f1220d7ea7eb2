#include "aha/explainer/explainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/attribution/chefer.h"
#include "aha/attribution/logit_attribution.h"
#include "aha/explainer/prior.h"
#include "aha/networks/convnext.h"
#include "aha/networks/vit.h"
#include "aha/nn/module_state.h"
#include "aha/testing/checks.h"
#include "aha/testing/renamed_weights.h"
#include "aha/testing/tiny_networks.h"

namespace aha {
namespace {

using checks::message_of;
using testing_nets::convnext_of_two_blocks;
using testing_nets::golden_input;
using testing_nets::golden_table;
using testing_nets::network_from_weights;
using testing_nets::vit_of_8_pixels;

// ---- ConvNeXt ----

TensorTable torchvision_convnext_golden() {
  const std::vector<int64_t> widths = {8, 16, 24, 32}, depths = {1, 1, 2, 1};
  std::map<std::string, std::vector<int64_t>> shapes = {
      {"features.0.0.weight", {8, 3, 4, 4}}, {"features.0.0.bias", {8}},
      {"features.0.1.weight", {8}},          {"features.0.1.bias", {8}},
      {"classifier.0.weight", {32}},         {"classifier.0.bias", {32}},
      {"classifier.2.weight", {5, 32}},      {"classifier.2.bias", {5}}};
  for (int s = 0; s < 4; ++s) {
    const auto w = widths[s];
    if (s > 0) {
      const auto down = fmt::format("features.{}.", 2 * s);
      shapes[down + "0.weight"] = shapes[down + "0.bias"] = {widths[s - 1]};
      shapes[down + "1.weight"] = {w, widths[s - 1], 2, 2};
      shapes[down + "1.bias"] = {w};
    }
    for (int j = 0; j < depths[s]; ++j) {
      const auto block = fmt::format("features.{}.{}.", 2 * s + 1, j);
      shapes[block + "layer_scale"] = {w, 1, 1};
      shapes[block + "block.0.weight"] = {w, 1, 7, 7};
      shapes[block + "block.0.bias"] = shapes[block + "block.2.weight"] =
          shapes[block + "block.2.bias"] = {w};
      shapes[block + "block.3.weight"] = {4 * w, w};
      shapes[block + "block.3.bias"] = {4 * w};
      shapes[block + "block.5.weight"] = {w, 4 * w};
      shapes[block + "block.5.bias"] = {w};
    }
  }
  return golden_table(shapes);
}

TEST(ConvNext, GivesTorchvisionsGoldenLogits) {
  const auto weights = canonical_from_any(torchvision_convnext_golden());
  const auto config = convnext_config_from_weights(weights);
  EXPECT_EQ(config.depths, (std::vector<int>{1, 1, 2, 1}));
  auto network = network_from_weights<ConvNext>(weights, config);
  const auto logits = network->forward(golden_input({1, 3, 64, 64}));
  const auto expected = torch::tensor({{-0.018543f, -0.081077f, -0.100568f, -0.077980f, -0.034344f}});
  EXPECT_LT((logits - expected).abs().max().item<double>(), 1.5e-6) << logits;
}

TEST(ConvNext, GivesIdenticalLogitsUnderEveryonesNames) {
  const auto weights = canonical_from_any(torchvision_convnext_golden());
  const auto config = convnext_config_from_weights(weights);
  const auto x = golden_input({1, 3, 64, 64});
  const auto expected = network_from_weights<ConvNext>(weights, config)->forward(x);
  for (const char* dialect : {"timm", "meta", "huggingface"}) {
    const auto renamed = canonical_from_any(renamed_from_canonical(weights, dialect));
    EXPECT_TRUE(network_from_weights<ConvNext>(renamed, config)->forward(x).equal(expected)) << dialect;
    EXPECT_EQ(convnext_config_from_weights(renamed).head_eps,
              std::string(dialect) == "huggingface" ? 1e-12 : 1e-6)
        << dialect;
  }
}

TEST(ConvNext, HasThePublishedNumberOfParameters) {
  const auto check = [](std::vector<int> depths, int width, int64_t parameters, size_t keys) {
    ConvNextConfig c;
    c.depths = std::move(depths);
    c.widths = {width, 2 * width, 4 * width, 8 * width};
    const ConvNext network(c);
    EXPECT_EQ(parameter_count(*network), parameters);
    EXPECT_EQ(state_shapes(*network).size(), keys);
  };
  check({3, 3, 9, 3}, 96, 28589128, 182);
  check({3, 3, 27, 3}, 96, 50223688, 344);
  check({3, 3, 27, 3}, 128, 88591464, 344);
}

TEST(ConvNext, GradientToThePixelsIsThatOfFiniteDifferences) {
  auto network = convnext_of_two_blocks();
  network->to(at::kDouble);
  testing_nets::expect_gradient([&](const Tensor& x) { return network->forward(x).select(1, 2).sum(); },
                                golden_input({1, 3, 16, 16}).to(at::kDouble));
}

TEST(ConvNext, ABatchGivesWhatOneByOneGives) {
  auto network = convnext_of_two_blocks();
  const auto x = golden_input({3, 3, 16, 16});
  const auto together = network->forward(x);
  for (int b = 0; b < 3; ++b) {
    const auto alone = network->forward(x.slice(0, b, b + 1));
    EXPECT_LT((together[b] - alone[0]).abs().max().item<double>(),
              1e-6 * (1 + alone.abs().max().item<double>()));
  }
}

TEST(ConvNext, TapsShowThePyramid) {
  auto network = convnext_of_two_blocks();
  Taps taps(network->tap_names());
  const auto logits = network->forward(golden_input({1, 3, 16, 16}), &taps);
  EXPECT_EQ(taps.at("stem").sizes(), (std::vector<int64_t>{1, 4, 8, 8}));
  EXPECT_EQ(taps.at("stage.1").sizes(), (std::vector<int64_t>{1, 8, 4, 4}));
  EXPECT_TRUE(taps.at("stage.1").equal(taps.at("stage.1.block.0")));
  EXPECT_TRUE(network->head(taps.at("features")).equal(logits));
  Taps unknown({"stage.2"});
  EXPECT_THAT(message_of([&] {
                network->forward(golden_input({1, 3, 16, 16}), &unknown);
              }),
              testing::HasSubstr("available: stem"));
  EXPECT_THAT(message_of([&] {
                network->forward(golden_input({1, 3, 2, 2}));
              }),
              testing::HasSubstr("at least 4 x 4"));
}

// ---- decoder ----

int64_t decoder_count(int width, int embedding, int head = 64) {
  DecoderOptions o;
  o.widths = std::vector<int>(4, width);
  o.embedding = embedding;
  o.head = head;
  return parameter_count(*Decoder(o));
}

TEST(Decoder, HasTheParametersOfThePaperSizedProposal) {
  EXPECT_EQ(decoder_count(1024, 1024), 16294145);
  EXPECT_EQ(decoder_count(384, 384), 14343425);
  EXPECT_EQ(decoder_count(384, 1024), 15638785);
  EXPECT_EQ(decoder_count(768, 768), 15513857);
  EXPECT_EQ(decoder_count(768, 1024), 16032001);
  EXPECT_EQ(decoder_count(1024, 1024, 32), 16294145 - 92033 + 55041);
  EXPECT_EQ(decoder_count(1024, 1024, 128), 16294145 - 92033 + 166017);
}

DecoderOptions small_decoder(std::vector<int> widths, std::vector<int> scales) {
  DecoderOptions o;
  o.widths = std::move(widths);
  o.scales = std::move(scales);
  o.classes = 3;
  o.embedding = 6;
  o.channels = 8;
  o.top = 4;
  o.head = 4;
  return o;
}

TEST(Decoder, TheSplitProjectionIsTheConcatenatedOne) {
  torch::manual_seed(1);
  Decoder decoder(small_decoder({5}, {1}));
  decoder->eval();
  const auto level = torch::randn({2, 5, 4, 4});
  const auto classes = torch::tensor({2, 0});
  const auto e = decoder->class_embed(classes);  // (2, 6)
  const auto joined = torch::cat({level, e.view({2, 6, 1, 1}).expand({2, 6, 4, 4})}, 1).permute({0, 2, 3, 1});
  auto map = torch::gelu(decoder->proj[0]->as<torch::nn::Linear>()->forward(joined)).permute({0, 3, 1, 2});
  map = decoder->fuse[0]->as<Fusion>()->forward(decoder->rn[0]->as<torch::nn::Conv2d>()->forward(map), {});
  map = decoder->head(decoder->top(at::upsample_bilinear2d(map, {8, 8}, true))).squeeze(1);
  EXPECT_LT((decoder->forward({level}, classes, 8, 8) - map).abs().max().item<double>(), 1e-5);
}

TEST(Decoder, TheClassDotIsAChannelThatHoldsTokenTimesClass) {
  torch::manual_seed(1);
  auto options = small_decoder({5}, {1});
  options.class_dot = true;
  Decoder decoder(options);
  decoder->eval();
  const auto level = torch::randn({2, 5, 4, 4});
  const auto classes = torch::tensor({2, 0});
  const auto e = decoder->class_embed(classes);                                    // (2, 6)
  const auto wanted = decoder->class_dot[0]->as<torch::nn::Linear>()->forward(e);  // (2, 5)
  const auto seen = (level * wanted.view({2, 5, 1, 1})).sum(1, true) / std::sqrt(5.0);
  const auto joined =
      torch::cat({level, e.view({2, 6, 1, 1}).expand({2, 6, 4, 4}), seen}, 1).permute({0, 2, 3, 1});
  auto map = torch::gelu(decoder->proj[0]->as<torch::nn::Linear>()->forward(joined)).permute({0, 3, 1, 2});
  map = decoder->fuse[0]->as<Fusion>()->forward(decoder->rn[0]->as<torch::nn::Conv2d>()->forward(map), {});
  map = decoder->head(decoder->top(at::upsample_bilinear2d(map, {8, 8}, true))).squeeze(1);
  EXPECT_LT((decoder->forward({level}, classes, 8, 8) - map).abs().max().item<double>(), 1e-5);
}

TEST(Decoder, TheClassDotOfALevelAsWideAsTheRowsBeginsAsTheRows) {
  auto options = small_decoder({5, 6, 7}, {1, 1, 1});
  options.class_dot = true;
  Decoder decoder(options);
  decoder->start_embedding_from(torch::randn({3, 6}));
  const auto rows = decoder->class_embed->weight;  // (3, 6)
  EXPECT_TRUE(torch::allclose(decoder->class_dot[1]->as<torch::nn::Linear>()->forward(rows), rows));
  const auto wider = decoder->class_dot[2]->as<torch::nn::Linear>()->forward(rows);
  EXPECT_TRUE(torch::allclose(wider.slice(1, 0, 6), rows));
  EXPECT_EQ(wider.slice(1, 6).abs().max().item<float>(), 0.f);
}

TEST(Decoder, EveryParameterGetsAGradient) {
  torch::manual_seed(1);
  auto options = small_decoder({5, 5, 5, 5}, {4, 2, 1, -2});
  options.level_norm = options.class_dot = true;
  Decoder decoder(options);
  std::vector<Tensor> levels;
  for (int k = 0; k < 4; ++k) levels.push_back(torch::randn({3, 5, 4, 4}));
  const auto map = decoder->forward(levels, torch::tensor({0, 1, 2}), 32, 32);
  EXPECT_EQ(map.sizes(), (std::vector<int64_t>{3, 32, 32}));
  (map * torch::randn_like(map)).sum().backward();
  for (const auto& item : decoder->named_parameters()) {
    // A bias in front of a batch norm is taken away by it again.
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
}

TEST(Decoder, GradientIsThatOfFiniteDifferences) {
  torch::manual_seed(2);
  auto options = small_decoder({3, 3}, {2, 1});
  options.class_dot = true;
  Decoder decoder(options);
  decoder->eval();
  decoder->to(at::kDouble);
  const auto fixed = torch::randn({1, 3, 2, 2}, at::kDouble);
  testing_nets::expect_gradient(
      [&](const Tensor& x) {
        return decoder->forward({x, fixed}, torch::tensor({1}), 8, 8).square().sum();
      },
      torch::randn({1, 3, 2, 2}, at::kDouble));
}

TEST(Decoder, InEvalAMapDoesNotDependOnItsBatchMates) {
  torch::manual_seed(3);
  Decoder decoder(small_decoder({5, 5}, {1, -2}));
  decoder->eval();
  const auto a = torch::randn({2, 5, 4, 4}), b = torch::randn({2, 5, 4, 4});
  const auto classes = torch::tensor({0, 1});
  const auto both = decoder->forward({a, b}, classes, 8, 8);
  const auto alone = decoder->forward({a.slice(0, 1), b.slice(0, 1)}, classes.slice(0, 1), 8, 8);
  EXPECT_LT((both[1] - alone[0]).abs().max().item<double>(), 1e-5);
}

TEST(Decoder, SigmoidKeepsTheMapBetweenZeroAndOne) {
  auto options = small_decoder({5}, {1});
  options.output = "sigmoid";
  options.padding = "replicate";
  Decoder decoder(options);
  decoder->eval();
  const auto map = decoder->forward({torch::randn({1, 5, 4, 4})}, torch::tensor({0}), 8, 8);
  EXPECT_GT(map.min().item<double>(), 0);
  EXPECT_LT(map.max().item<double>(), 1);
}

TEST(Decoder, ReplicatePaddingLeavesAConstantConstant) {
  auto options = small_decoder({5, 5}, {1, -2});
  options.padding = "replicate";
  Decoder decoder(options);
  decoder->eval();
  const auto map =
      decoder->forward({torch::ones({1, 5, 4, 4}), torch::ones({1, 5, 4, 4})}, torch::tensor({0}), 8, 8);
  EXPECT_LT((map.max() - map.min()).item<double>(), 1e-5);
}

TEST(Decoder, StartsItsEmbeddingFromGivenRows) {
  Decoder decoder(small_decoder({5}, {1}));
  const auto rows = torch::randn({3, 6}) * 7 + 2;
  decoder->start_embedding_from(rows);
  EXPECT_NEAR(decoder->class_embed->weight.std().item<double>(), 1, 1e-5);
  EXPECT_THAT(message_of([&] {
                decoder->start_embedding_from(torch::zeros({3, 5}));
              }),
              testing::HasSubstr("expected shape [3, 6]"));
}

// ---- explainer ----

ClassifierInfo info_of(int size) {
  ClassifierInfo info;
  info.name = "tiny";
  info.input.size = size;
  info.sha256 = "abc";
  return info;
}

// Channels of each level, found by one forward of a black image.
std::vector<int> widths_of(Encoder& encoder, int image_size) {
  std::vector<int> widths;
  for (const auto& map : encoder.features(torch::zeros({1, 3, image_size, image_size})))
    widths.push_back(static_cast<int>(map.size(1)));
  return widths;
}

TEST(Explainer, LooksAtTheTargetsOwnTokensAndAttention) {
  VitClassifier target(vit_of_8_pixels(), info_of(8));
  auto encoder = encoder_from_target(target, {"block.0+block.0.attention", "block.1", "patch_embed"});
  EXPECT_EQ(widths_of(*encoder, 8), (std::vector<int>{8 + 2, 8, 8}));
  const auto pixels = golden_input({2, 3, 8, 8}).abs();
  const auto levels = encoder->features(pixels);
  Taps taps({"block.0", "block.0.attention"});
  target.logits(pixels, &taps);
  EXPECT_EQ(levels[0].sizes(), (std::vector<int64_t>{2, 10, 2, 2}));
  EXPECT_TRUE(levels[0][1].slice(0, 0, 8).flatten(1).t().equal(taps.at("block.0")[1].slice(0, 1)));
  EXPECT_TRUE(levels[0][1][9].flatten().equal(taps.at("block.0.attention")[1][1][0].slice(0, 1) * 5));

  Explainer explainer(std::move(encoder), small_decoder({10, 8, 8}, {2, 1, -2}));
  explainer.decoder()->eval();
  const auto features = explainer.features(pixels, torch::tensor({0, 2}));
  const auto map = explainer.decode(features, torch::tensor({0, 2}));
  EXPECT_EQ(map.sizes(), (std::vector<int64_t>{2, 8, 8}));
  EXPECT_TRUE(map.equal(explainer.map(pixels, torch::tensor({0, 2}))));
  EXPECT_FALSE(map.equal(explainer.decode(features, torch::tensor({1, 2}))));
}

TEST(Explainer, TakesAPyramidOfDifferentSizes) {
  ConvNextClassifier target(convnext_of_two_blocks(), info_of(16));
  auto encoder = encoder_from_target(target, {"stage.0", "stage.1"});
  EXPECT_EQ(widths_of(*encoder, 16), (std::vector<int>{4, 8}));
  Explainer explainer(std::move(encoder), small_decoder({4, 8}, {1, 1}));
  explainer.decoder()->eval();
  EXPECT_EQ(explainer.map(torch::rand({1, 3, 16, 16}), torch::tensor({0})).sizes(),
            (std::vector<int64_t>{1, 16, 16}));
}

TEST(Explainer, TakesAVisionTransformerOfItsOwn) {
  EncoderInfo info;
  info.name = "tiny";
  info.normalized = true;
  auto encoder = encoder_from_classifier(std::make_shared<NetworkClassifier>(vit_of_8_pixels(), info_of(8)),
                                         {"block.0", "block.1"}, info);
  EXPECT_EQ(encoder->info().levels, (std::vector<std::string>{"block.0", "block.1"}));
  Explainer explainer(std::move(encoder), small_decoder({8, 8}, {2, 1}));
  explainer.decoder()->eval();
  EXPECT_EQ(explainer.map(torch::rand({1, 3, 16, 16}), torch::tensor({0})).sizes(),
            (std::vector<int64_t>{1, 16, 16}));
  EXPECT_EQ(default_blocks(24), (std::vector<int>{4, 11, 17, 23}));
  EXPECT_EQ(default_blocks(12), (std::vector<int>{2, 5, 8, 11}));
  EXPECT_EQ(default_blocks(6), (std::vector<int>{0, 2, 3, 5}));
}

TEST(Decoder, HasTheSameGradientsWithAndWithoutOneDnn) {
  for (const char* padding : {"zeros", "replicate"}) {
    torch::manual_seed(1);
    Decoder decoder(DecoderOptions{.widths = {3},
                                   .scales = {1},
                                   .classes = 3,
                                   .embedding = 8,
                                   .channels = 16,
                                   .top = 16,
                                   .head = 16,
                                   .last_up = 1,
                                   .padding = padding});
    decoder->eval();
    const Tensor pixels = torch::rand({2, 3, 24, 24}), weights = torch::rand({2, 24, 24});
    std::vector<Tensor> gradients;  // of proj, flat
    for (const bool one_dnn : {true, false}) {
      at::globalContext().setUserEnabledMkldnn(one_dnn);
      decoder->zero_grad();
      (decoder->forward({pixels}, torch::tensor({0, 1}), 24, 24) * weights).mean().backward();
      gradients.push_back(decoder->proj[0]->as<torch::nn::Linear>()->weight.grad().clone());
    }
    at::globalContext().setUserEnabledMkldnn(true);
    EXPECT_LT((gradients[0] - gradients[1]).norm().item<double>(), 1e-4 * gradients[1].norm().item<double>())
        << padding;
  }
}

class ExplainerPrior : public testing::TestWithParam<std::string> {};

TEST_P(ExplainerPrior, IsTheOrderThatAnExplainerBeginsWith) {
  VitClassifier target(vit_of_8_pixels(), info_of(8));
  auto options = small_decoder({8, 8}, {2, 1});
  options.prior = GetParam();
  options.prior_weight = 6;
  Explainer explainer(encoder_from_target(target, {"block.0", "block.1"}), options, &target);
  explainer.decoder()->eval();
  const auto pixels = golden_input({2, 3, 8, 8}).abs(), classes = torch::tensor({0, 2});
  const Tensor decoded = explainer.map(pixels, classes);

  explainer.decoder()->start_from_prior();
  const Tensor map = explainer.map(pixels, classes);
  const auto patches = (GetParam() == "chefer" ? chefer_values(target, pixels, classes)
                                               : logit_values(target, pixels, classes));  // (2, 4)
  for (int b = 0; b < 2; ++b) {
    // The corners of a 2 x 2 grid upsampled to 8 x 8 are its values: thirds, as there are four patches.
    const auto corners = torch::stack({map[b][0][0], map[b][0][7], map[b][7][0], map[b][7][7]});
    EXPECT_TRUE(corners.argsort().equal(patches[b].argsort()));
    EXPECT_TRUE(std::get<0>(corners.sort()).allclose(torch::tensor({0.f, 2.f, 4.f, 6.f})));
  }
  EXPECT_FALSE(map.equal(decoded));  // the decoder's share was not nothing
  EXPECT_TRUE(map.narrow(0, 1, 1).equal(explainer.map(pixels.narrow(0, 1, 1), classes.narrow(0, 1, 1))));
}

INSTANTIATE_TEST_SUITE_P(All, ExplainerPrior, testing::Values("chefer", "logit-attribution"));

TEST(Explainer, ShowsItsDecoderWhatEachBlockAddsToTheLogit) {
  VitClassifier target(vit_of_8_pixels(), info_of(8));
  auto options = small_decoder({8, 8}, {2, 1});
  options.prior = "logit-attribution";
  options.prior_parts = prior_parts(options.prior, target);
  ASSERT_EQ(options.prior_parts, 2);  // blocks
  Explainer explainer(encoder_from_target(target, {"block.0", "block.1"}), options, &target);
  explainer.decoder()->eval();
  const auto pixels = golden_input({2, 3, 8, 8}).abs(), classes = torch::tensor({0, 2});

  const torch::NoGradGuard no_grad;
  const Tensor shares = logit_shares(target, pixels, classes);
  EXPECT_TRUE(shares.sum(1).allclose(logit_values(target, pixels, classes), 1e-5, 1e-7));
  const LogitAttribution last{.blocks = 1};
  EXPECT_TRUE(shares.select(1, 1).allclose(logit_values(target, pixels, classes, last), 1e-5, 1e-7));
  const Features features = explainer.features(pixels, classes);
  EXPECT_TRUE(features.prior_parts.equal(scaled_parts(shares)));
  const Tensor map = explainer.decode(features, classes);
  EXPECT_TRUE(map.narrow(0, 1, 1).equal(explainer.map(pixels.narrow(0, 1, 1), classes.narrow(0, 1, 1))));
  explainer.decoder()->prior_parts[1]->as<torch::nn::Linear>()->weight.zero_();
  EXPECT_FALSE(map.equal(explainer.decode(features, classes)));

  options.prior_parts = 3;
  EXPECT_THAT(message_of([&] {
                Explainer(encoder_from_target(target, {"block.0", "block.1"}), options, &target);
              }),
              testing::HasSubstr("expects 3 parts of a prior, found 2"));
  options.prior = "chefer";
  EXPECT_THAT(message_of([&] {
                Explainer(encoder_from_target(target, {"block.0", "block.1"}), options, &target);
              }),
              testing::HasSubstr("found 0 (chefer)"));
}

TEST(Explainer, ScalesThePartsOfAPriorSoThatSmallOnesStaySmall) {
  const Tensor one = torch::tensor({0.f, 1.f, 2.f, 5.f});
  const Tensor parts = scaled_parts(torch::stack({1e-6 * one, one, 3 * one}).unsqueeze(0));
  EXPECT_LT(parts[0][0].abs().max().item<float>(), 1e-4);
  EXPECT_TRUE(scaled_parts(100 * torch::stack({one, 3 * one}).unsqueeze(0))
                  .allclose(scaled_parts(torch::stack({one, 3 * one}).unsqueeze(0))));
  EXPECT_GT(parts[0][2].max().item<float>(), parts[0][1].max().item<float>());
}

TEST(Explainer, BeginsWithTheOrderOfTheClassActivationMap) {
  ConvNextClassifier target(convnext_of_two_blocks(), info_of(16));
  const auto taps = target.default_levels();
  const auto pixels = golden_input({2, 3, 16, 16}).abs(), classes = torch::tensor({0, 2});
  const Tensor features = target.features(pixels, {taps[0]})[0];
  auto options = small_decoder({static_cast<int>(features.size(1))}, {1});
  options.prior = "cam";
  options.prior_weight = 6;
  Explainer explainer(encoder_from_target(target, {taps[0]}), options, &target);
  explainer.decoder()->eval();
  ASSERT_TRUE(explainer.shares_forward());
  const Tensor decoded = explainer.map(pixels, classes);

  // The order by hand: the logit of a class is a sum over the places of the last feature maps.
  const Tensor last = target.features(pixels, {"features"})[0];
  for (int b = 0; b < 2; ++b) {
    Tensor weights = torch::zeros({target.info().classes});
    weights[classes[b].item<int64_t>()] = 1;
    const Tensor one = last.narrow(0, b, 1);
    const Tensor direction = target.head_direction(one.mean({2, 3}), weights)[0];
    const Tensor places = one[0].flatten(1).t().mv(direction);
    const Tensor order =
        torch::empty_like(places).scatter_(0, places.argsort(), torch::linspace(0, 1, places.size(0)));
    const Tensor expected =
        at::upsample_bilinear2d(order.view({1, 1, last.size(2), last.size(3)}), {16, 16}, false);
    EXPECT_TRUE(explainer.features(pixels, classes).prior[b].allclose(expected[0][0], 1e-5, 1e-6));
  }
  EXPECT_TRUE(
      explainer.features(pixels, classes).prior.equal(prior_maps("cam", target, pixels, classes).order));

  explainer.decoder()->start_from_prior();
  EXPECT_TRUE(explainer.map(pixels, classes).allclose(6 * prior_maps("cam", target, pixels, classes).order));
  EXPECT_FALSE(explainer.map(pixels, classes).equal(decoded));
}

TEST(Explainer, SaysWhatItsPriorNeeds) {
  VitClassifier target(vit_of_8_pixels(), info_of(8));
  ConvNextClassifier other(convnext_of_two_blocks(), info_of(16));
  auto options = small_decoder({8}, {1});
  options.prior = "chefer";
  EXPECT_THAT(message_of([&] { Explainer(encoder_from_target(target, {"block.0"}), options); }),
              testing::HasSubstr("give the target"));
  EXPECT_THAT(message_of([&] { Explainer(encoder_from_target(target, {"block.0"}), options, &other); }),
              testing::HasSubstr("expected a target with attention"));
  options.prior = "cam";
  EXPECT_THAT(message_of([&] { Explainer(encoder_from_target(target, {"block.0"}), options, &target); }),
              testing::HasSubstr("expected a ConvNet"));
}

TEST(Explainer, NamesTheTapsThatATargetHas) {
  VitClassifier target(vit_of_8_pixels(), info_of(8));
  EXPECT_THAT(message_of([&] { encoder_from_target(target, {"stage.0"}); }),
              testing::HasSubstr("patch_embed"));
}

TEST(Explainer, ACopyOfTheDecoderIsAsNewAfterAnotherWasTrained) {
  EncoderInfo info;
  info.name = "tiny";
  Explainer explainer(
      encoder_from_classifier(std::make_shared<NetworkClassifier>(vit_of_8_pixels(), info_of(8)),
                              {"block.0", "block.1"}, info),
      small_decoder({8, 8}, {2, 1}));
  explainer.decoder()->eval();
  const Tensor classes = torch::tensor({0});
  const Features features = explainer.features(torch::rand({1, 3, 16, 16}), classes);
  const Tensor expected = explainer.decode(features, classes);
  const DecoderImpl* first = nullptr;
  {
    const auto copy = explainer.decoder_copy();
    first = copy.get();
    EXPECT_NE(first, explainer.decoder().get());
    const auto map = [&] { return copy->forward(features.levels, classes, 16, 16); };
    EXPECT_TRUE(torch::equal(map(), expected));
    map().sum().backward();
    const torch::NoGradGuard no_grad;
    for (auto& parameter : copy->parameters()) parameter.add_(0.5);
    for (auto& buffer : copy->buffers()) buffer.add_(1);
    EXPECT_FALSE(torch::equal(map(), expected));
  }
  const auto again = explainer.decoder_copy(), another = explainer.decoder_copy();
  EXPECT_EQ(again.get(), first);
  EXPECT_NE(another.get(), first);
  for (const auto& copy : {again, another}) {
    EXPECT_TRUE(torch::equal(copy->forward(features.levels, classes, 16, 16), expected));
    EXPECT_FALSE(copy->top->weight.grad().defined());
  }
  EXPECT_TRUE(torch::equal(explainer.decode(features, classes), expected));
}

}  // namespace
}  // namespace aha
