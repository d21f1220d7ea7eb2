#include "aha/networks/vit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/upsampling.h>

#include "aha/nn/module_state.h"
#include "aha/testing/checks.h"
#include "aha/testing/renamed_weights.h"
#include "aha/testing/tiny_networks.h"

namespace aha {
namespace {

using checks::message_of;
using testing_nets::golden_input;
using testing_nets::golden_table;
using testing_nets::network_from_weights;
using testing_nets::vit_of_8_pixels;

VitConfig config_of(int width, int depth, int patch) {
  VitConfig c;
  c.width = width;
  c.depth = depth;
  c.patch = patch;
  c.heads = width / 64;
  c.mlp_hidden = 4 * width;
  return c;
}

// torchvision's names with the golden sizes: image 32, P 8, L 2, h 2, D 16, MLP 64, C 5.
TensorTable torchvision_golden() {
  std::map<std::string, std::vector<int64_t>> shapes = {
      {"class_token", {1, 1, 16}},    {"conv_proj.weight", {16, 3, 8, 8}},
      {"conv_proj.bias", {16}},       {"encoder.pos_embedding", {1, 17, 16}},
      {"encoder.ln.weight", {16}},    {"encoder.ln.bias", {16}},
      {"heads.head.weight", {5, 16}}, {"heads.head.bias", {5}}};
  for (int i = 0; i < 2; ++i) {
    const auto block = fmt::format("encoder.layers.encoder_layer_{}.", i);
    shapes[block + "ln_1.weight"] = shapes[block + "ln_1.bias"] = {16};
    shapes[block + "ln_2.weight"] = shapes[block + "ln_2.bias"] = {16};
    shapes[block + "self_attention.in_proj_weight"] = {48, 16};
    shapes[block + "self_attention.in_proj_bias"] = {48};
    shapes[block + "self_attention.out_proj.weight"] = {16, 16};
    shapes[block + "self_attention.out_proj.bias"] = {16};
    shapes[block + "mlp.0.weight"] = {64, 16};
    shapes[block + "mlp.0.bias"] = {64};
    shapes[block + "mlp.3.weight"] = {16, 64};
    shapes[block + "mlp.3.bias"] = {16};
  }
  return golden_table(shapes);
}

TEST(Vit, GivesTorchvisionsGoldenLogits) {
  const auto weights = canonical_from_any(torchvision_golden());
  EXPECT_EQ(weights.source, "torchvision");
  const auto config = vit_config_from_weights(weights, 2);
  EXPECT_EQ(config.image_size, 32);
  EXPECT_EQ(config.eps, 1e-6);
  auto network = network_from_weights<Vit>(weights, config);
  const auto logits = network->forward(golden_input({2, 3, 32, 32}));
  const auto expected = torch::tensor({{-0.054415, -0.041879, -0.024261, -0.003808, 0.016912},
                                       {-0.058504, -0.050666, -0.036601, -0.018090, 0.002550}},
                                      at::kFloat);
  EXPECT_LT((logits - expected).abs().max().item<double>(), 1e-6) << logits;
}

TEST(Vit, GivesIdenticalLogitsUnderEveryonesNames) {
  const auto weights = canonical_from_any(torchvision_golden());
  const auto config = vit_config_from_weights(weights, 2);
  const auto x = golden_input({2, 3, 32, 32});
  const auto expected = network_from_weights<Vit>(weights, config)->forward(x);
  for (const char* dialect : {"timm", "huggingface", "huggingface-v5"}) {
    const auto renamed = canonical_from_any(renamed_from_canonical(weights, dialect));
    EXPECT_TRUE(network_from_weights<Vit>(renamed, config)->forward(x).equal(expected)) << dialect;
    const auto own = vit_config_from_weights(renamed, 2);
    EXPECT_EQ(own.eps, std::string(dialect) == "timm" ? 1e-6 : 1e-12) << dialect;
    EXPECT_EQ(own.position_rule, std::string(dialect) == "timm" ? "antialias" : "plain") << dialect;
  }
}

TEST(Vit, EpsilonOfHuggingFaceMovesTheGoldenLogitsByFourMillionths) {
  const auto weights = canonical_from_any(torchvision_golden());
  auto config = vit_config_from_weights(weights, 2);
  const auto x = golden_input({2, 3, 32, 32});
  const auto first = network_from_weights<Vit>(weights, config)->forward(x);
  config.eps = 1e-12;
  EXPECT_NEAR((network_from_weights<Vit>(weights, config)->forward(x) - first).abs().max().item<double>(),
              3.9e-6, 5e-7);
}

TEST(Vit, GivesDinov3sGoldenTaps) {
  std::map<std::string, std::vector<int64_t>> shapes = {
      {"cls_token", {1, 1, 64}},       {"storage_tokens", {1, 4, 64}},
      {"mask_token", {1, 64}},         {"patch_embed.proj.weight", {64, 3, 16, 16}},
      {"patch_embed.proj.bias", {64}}, {"rope_embed.periods", {8}},
      {"norm.weight", {64}},           {"norm.bias", {64}}};
  for (int i = 0; i < 3; ++i) {
    const auto block = fmt::format("blocks.{}.", i);
    for (const char* name : {"norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias", "ls1.gamma",
                             "ls2.gamma", "attn.proj.bias", "mlp.fc2.bias"})
      shapes[block + name] = {64};
    shapes[block + "attn.qkv.weight"] = {192, 64};
    shapes[block + "attn.qkv.bias"] = shapes[block + "attn.qkv.bias_mask"] = {192};
    shapes[block + "attn.proj.weight"] = {64, 64};
    shapes[block + "mlp.fc1.weight"] = {256, 64};
    shapes[block + "mlp.fc1.bias"] = {256};
    shapes[block + "mlp.fc2.weight"] = {64, 256};
  }
  auto table = golden_table(shapes);
  table.tensors["rope_embed.periods"] = view_from_tensor(rope_periods(32));
  for (int i = 0; i < 3; ++i) {
    auto mask = torch::ones({192});
    mask.slice(0, 64, 128).zero_();
    table.tensors[fmt::format("blocks.{}.attn.qkv.bias_mask", i)] = view_from_tensor(mask);
  }
  const auto weights = canonical_from_any(table);
  EXPECT_EQ(weights.family, "dinov3");
  const auto config = vit_config_from_weights(weights, 2);
  EXPECT_EQ(config.eps, 1e-5);
  EXPECT_TRUE(config.rope && config.layer_scale);
  EXPECT_EQ(config.registers, 4);
  auto network = network_from_weights<Vit>(weights, config);
  Taps taps({"block.0.normalized", "block.2.normalized"});
  network->forward(golden_input({1, 3, 48, 80}), &taps);
  const auto expect_tokens = [&](const std::string& tap, std::vector<float> first, std::vector<float> last,
                                 double sum) {
    const auto tokens = taps.at(tap)[0].slice(0, network->prefix_tokens());  // (15, 64)
    ASSERT_EQ(tokens.sizes(), (std::vector<int64_t>{15, 64}));
    EXPECT_LT((tokens[0].slice(0, 0, 5) - torch::tensor(first)).abs().max().item<double>(), 5e-6)
        << tokens[0].slice(0, 0, 5);
    EXPECT_LT((tokens[14].slice(0, 0, 5) - torch::tensor(last)).abs().max().item<double>(), 5e-6)
        << tokens[14].slice(0, 0, 5);
    EXPECT_NEAR(tokens.to(at::kDouble).sum().item<double>(), sum, 1e-4);
  };
  expect_tokens("block.0.normalized", {-0.859588, 1.534554, 1.136738, -0.748797, -0.139568},
                {-0.398602, -0.566430, 0.037547, 1.168917, 1.651392}, 18.63626);
  expect_tokens("block.2.normalized", {-0.836837, 1.167495, 0.918156, -0.241399, 0.563172},
                {-0.585506, 0.064700, 0.341423, 0.759139, 1.480228}, 16.12696);
}

TEST(Vit, HasThePublishedNumberOfParameters) {
  const auto count = [](VitConfig c) { return parameter_count(*Vit(c)); };
  EXPECT_EQ(count(config_of(192, 12, 16)), 5717416);
  EXPECT_EQ(count(config_of(384, 12, 32)), 22878952);
  EXPECT_EQ(count(config_of(384, 12, 16)), 22050664);
  EXPECT_EQ(count(config_of(768, 12, 32)), 88224232);
  EXPECT_EQ(count(config_of(768, 12, 16)), 86567656);
  EXPECT_EQ(count(config_of(1024, 24, 16)), 304326632);
  EXPECT_EQ(count(config_of(1024, 24, 32)), 306535400);
  auto large_input = config_of(768, 12, 16);
  large_input.image_size = 384;
  EXPECT_EQ(count(large_input), 86859496);
  auto distilled = config_of(768, 12, 16);
  distilled.distilled = true;
  EXPECT_EQ(count(distilled), 87338192);
  EXPECT_EQ(state_shapes(*Vit(distilled)).size(), 155u);
}

TEST(Vit, HasThePublishedNumberOfParametersAsDino) {
  const auto count = [](VitConfig c) { return parameter_count(*Vit(c)); };
  auto dino = config_of(384, 12, 16);
  dino.classes = 0;
  EXPECT_EQ(count(dino), 21665664);
  auto dinov2 = config_of(384, 12, 14);
  dinov2.classes = 0;
  dinov2.layer_scale = true;
  dinov2.image_size = 518;
  EXPECT_EQ(count(dinov2), 22056576 - 384);  // the published figure counts the mask token
  auto dinov3 = config_of(384, 12, 16);
  dinov3.classes = 0;
  dinov3.layer_scale = dinov3.rope = true;
  dinov3.registers = 4;
  EXPECT_EQ(count(dinov3), 21601152 - 384);
  dinov3.swiglu = true;
  EXPECT_EQ(count(dinov3), 28697472 - 384);
  dinov3.swiglu = false;
  dinov3.width = 768;
  dinov3.heads = 12;
  dinov3.mlp_hidden = 3072;
  EXPECT_EQ(count(dinov3), 85669632 - 768);
  dinov3.width = 1024;
  dinov3.heads = 16;
  dinov3.depth = 24;
  dinov3.mlp_hidden = 4096;
  EXPECT_EQ(count(dinov3), 303154176 - 1024);
}

TEST(Vit, GradientToThePixelsIsThatOfFiniteDifferences) {
  auto network = vit_of_8_pixels();
  network->to(at::kDouble);
  testing_nets::expect_gradient([&](const Tensor& x) { return network->forward(x).select(1, 2).sum(); },
                                golden_input({1, 3, 8, 8}).to(at::kDouble));
}

TEST(Vit, ABatchGivesWhatOneByOneGives) {
  auto network = vit_of_8_pixels();
  const auto x = golden_input({3, 3, 8, 8});
  const auto together = network->forward(x);
  for (int b = 0; b < 3; ++b) {
    const auto alone = network->forward(x.slice(0, b, b + 1));
    EXPECT_LT((together[b] - alone[0]).abs().max().item<double>(),
              1e-6 * (1 + alone.abs().max().item<double>()));
  }
}

TEST(Vit, TapsShowTheForwardAndTheirGradients) {
  auto network = vit_of_8_pixels();
  Taps taps(network->tap_names());
  const auto x = golden_input({2, 3, 8, 8}).requires_grad_();
  const auto logits = network->forward(x, &taps);
  EXPECT_EQ(taps.at("patch_embed").sizes(), (std::vector<int64_t>{2, 4, 8}));
  const auto& attention = taps.at("block.1.attention");
  EXPECT_EQ(attention.sizes(), (std::vector<int64_t>{2, 2, 5, 5}));
  EXPECT_LT((attention.sum(-1) - 1).abs().max().item<double>(), 1e-6);
  EXPECT_TRUE(network->norm(taps.at("block.1")).equal(taps.at("norm")));
  EXPECT_TRUE(network->classify(taps.at("norm")).equal(logits));
  EXPECT_EQ(taps.at("block.0.norm1").sizes(), (std::vector<int64_t>{2, 5, 8}));
  EXPECT_EQ(taps.at("block.0.attention_out").sizes(), (std::vector<int64_t>{2, 5, 8}));
  const auto gradient = torch::autograd::grad({logits.select(1, 0).sum()}, {attention})[0];
  EXPECT_GT(gradient.abs().max().item<double>(), 0);
}

TEST(Vit, AnUnknownTapListsTheAvailableOnes) {
  auto network = vit_of_8_pixels();
  Taps taps({"block.7"});
  const auto message = message_of([&] { network->forward(golden_input({1, 3, 8, 8}), &taps); });
  EXPECT_THAT(message, testing::HasSubstr("block.7"));
  EXPECT_THAT(message, testing::HasSubstr("available"));
  EXPECT_THAT(message, testing::HasSubstr("block.1"));
}

TEST(Vit, RunsOnAPartOfItsTokens) {
  auto network = vit_of_8_pixels();
  const auto tokens = network->embed(golden_input({1, 3, 8, 8}));
  EXPECT_TRUE(network->forward_tokens(tokens).equal(network->forward(golden_input({1, 3, 8, 8}))));
  const auto some = tokens.index_select(1, torch::tensor({0, 2, 4}));
  EXPECT_EQ(network->forward_tokens(some).sizes(), (std::vector<int64_t>{1, 3}));
}

// The rules of spec section 1.6, from (1, D, 4, 4) to 6 x 6, against torch's public interpolate.
TEST(Vit, MovesPositionsToOtherSizesByTheRuleOfTheSource) {
  namespace F = torch::nn::functional;
  auto config = vit_of_8_pixels()->config;
  config.image_size = 16;
  for (const std::string rule : {"align_corners", "antialias", "plain", "scale_offset"}) {
    config.position_rule = rule;
    Vit network(config);
    network->initialize(3);
    const torch::NoGradGuard no_grad;
    network->pos_embed.copy_(golden_input({1, 17, 8}));
    const auto x = torch::zeros({1, 3, 24, 24});
    const auto grid = network->pos_embed.slice(1, 1).transpose(1, 2).reshape({1, 8, 4, 4});
    auto options = F::InterpolateFuncOptions()
                       .mode(torch::kBicubic)
                       .align_corners(rule == "align_corners")
                       .antialias(rule == "antialias");
    if (rule == "scale_offset")
      options.scale_factor(std::vector<double>{6.1 / 4, 6.1 / 4});
    else
      options.size(std::vector<int64_t>{6, 6});
    const auto expected = F::interpolate(grid, options).flatten(2).transpose(1, 2);
    const auto moved = network->embed(x).slice(1, 1) - network->patch_embed(x);
    EXPECT_LT((moved - expected).abs().max().item<double>(), 1e-6) << rule;
    EXPECT_TRUE(
        network->embed(x).slice(1, 0, 1).equal(network->cls_token + network->pos_embed.slice(1, 0, 1)))
        << rule;
  }
}

TEST(Vit, DistilledAveragesItsTwoHeads) {
  auto config = vit_of_8_pixels()->config;
  config.distilled = true;
  Vit network(config);
  network->initialize(5);
  const auto x = golden_input({1, 3, 8, 8});
  const auto tokens = network->tokens(x);
  EXPECT_EQ(tokens.size(1), 6);
  const auto expected = (network->head(tokens.select(1, 0)) + network->head_dist(tokens.select(1, 1))) / 2;
  EXPECT_TRUE(network->forward(x).equal(expected));
}

TEST(Vit, RefusesWeightsThatDoNotFitAndSaysWhich) {
  const auto weights = canonical_from_any(torchvision_golden());
  auto config = vit_config_from_weights(weights, 2);
  config.depth = 3;
  EXPECT_THAT(message_of([&] { network_from_weights<Vit>(weights, config); }),
              testing::HasSubstr("blocks.2."));
}

TEST(Vit, StoredPeriodsWinUnlessTheFormulaIsAskedFor) {
  VitConfig config = vit_of_8_pixels()->config;
  config.rope = true;
  config.width = 16;
  Vit network(config);
  network->initialize(1);
  CanonicalWeights weights{table_from_state(*network), "dinov3", "dinov3"};
  weights.table.tensors["rope.periods"] = view_from_floats({2}, {1, 7});
  EXPECT_EQ(network_from_weights<Vit>(weights, config)->rope->periods[1].item<float>(), 7);
  config.rope_formula = true;
  EXPECT_EQ(network_from_weights<Vit>(weights, config)->rope->periods[1].item<float>(), 10);
}

// Tokens that differ by their place alone look at themselves and their neighbors, and not far away.
TEST(Vit, MimeticAttentionBeginsLocal) {
  VitConfig config = config_of(128, 2, 4);
  config.image_size = 32;
  config.classes = 10;
  Vit network(config);
  const auto own_share = [&] {
    Taps taps({"block.0.attention"});
    const torch::NoGradGuard no_grad;
    network->forward(torch::zeros({1, 3, 32, 32}), &taps);
    const Tensor patches = taps.at("block.0.attention")[0].mean(0).slice(0, 1).slice(1, 1);  // (64, 64)
    Tensor near = torch::zeros({64, 64});
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < 64; ++j) near[i][j] = std::abs(i / 8 - j / 8) <= 1 && std::abs(i % 8 - j % 8) <= 1;
    return (patches * near).sum().item<double>() / 64;
  };
  network->initialize(3);
  EXPECT_NEAR(own_share(), 484.0 / 64 / 65, 0.02);  // all alike: neighbors and selves among 65 tokens
  network->initialize_mimetic(3);
  EXPECT_GT(own_share(), 0.3);
}

TEST(Vit, TheSameSeedGivesTheSameStart) {
  const auto start = [](uint64_t seed) {
    Vit network(vit_of_8_pixels()->config);
    network->initialize(seed);
    return network->forward(golden_input({1, 3, 8, 8}));
  };
  EXPECT_TRUE(start(7).equal(start(7)));
  EXPECT_FALSE(start(7).equal(start(8)));
}

TEST(Vit, LeavesPatchesOut) {
  ClassifierInfo info;
  info.name = "tiny";
  info.input.size = 8;
  NetworkClassifier target(vit_of_8_pixels(), info);
  const Tensor pixels = torch::rand({2, 3, 8, 8}),
               all = torch::tensor({{0, 1, 2, 3}, {3, 1, 0, 2}}).unsqueeze(1);  // (2, 1, 4)
  EXPECT_LT(
      (target.patch_subset_logits(pixels, all).squeeze(1) - target.logits(pixels)).abs().max().item<double>(),
      1e-4);
  const Tensor some = torch::tensor({{0, 2}, {1, 3}}).unsqueeze(1),
               logits = target.patch_subset_logits(pixels, some);
  EXPECT_GT((logits.squeeze(1) - target.logits(pixels)).abs().max().item<double>(), 1e-3);
  // What is left out does not matter.
  Tensor changed = pixels.clone();
  changed[0].slice(2, 4).fill_(0.3);  // patches 1 and 3
  changed[1].slice(2, 0, 4).fill_(0.3);
  EXPECT_TRUE(target.patch_subset_logits(changed, some).equal(logits));
  Taps taps({"block.1"});
  target.logits(pixels, &taps);
  EXPECT_LT((target.read_out(taps.at("block.1")) - target.logits(pixels)).abs().max().item<double>(), 1e-5);
  NetworkClassifier convnext(testing_nets::convnext_of_two_blocks(), info);
  EXPECT_THAT(message_of([&] { convnext.patch_subset_logits(pixels, some); }),
              testing::HasSubstr("expected a vision transformer"));
}

}  // namespace
}  // namespace aha
