#include "aha/networks/convnext_engine.h"

#include <gtest/gtest.h>

#include "aha/explainer/encoder.h"
#include "aha/nn/module_state.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::relative;

ConvNextConfig small_convnext() {
  ConvNextConfig c;
  c.image_size = 32;
  c.stem_stride = 2;
  c.widths = {64, 128, 256};
  c.depths = {1, 3, 1};
  c.classes = 10;
  return c;
}

ConvNextConfig tiny_like_config() {
  ConvNextConfig c;
  c.image_size = 64;
  c.widths = {96, 192, 384, 768};
  c.depths = {1, 1, 2, 1};
  c.classes = 20;
  c.head_eps = 1e-12;
  return c;
}

// Random everything, norms and biases too, so that a tensor in the wrong place shows.
ConvNext random_network(const ConvNextConfig& config) {
  ConvNext network(config);
  const torch::NoGradGuard no_grad;
  torch::manual_seed(5);
  for (auto& item : network->named_parameters()) {
    Tensor p = item.value();
    if (p.dim() >= 2)
      p.copy_(torch::randn_like(p) / std::sqrt(static_cast<double>(p[0].numel())));
    else if (item.key().ends_with("bias"))
      p.copy_(0.2 * torch::randn_like(p));
    else
      p.copy_(0.8 + 0.2 * torch::randn_like(p));
  }
  freeze(*network);
  return network;
}

ClassifierInfo info_of(const ConvNextConfig& config) {
  ClassifierInfo info;
  info.input.size = config.image_size;
  return info;
}

// Float32 sums of a few hundred products: 1e-4 is the promise of --precision f32.
constexpr double kExactConvNext = 1e-4;

TEST(ConvNextEngine, GivesTheNetworkItsOrderOfChannels) {
  const auto config = small_convnext();
  ConvNext network = random_network(config);
  auto info = info_of(config);
  const Tensor pixels = torch::rand({2, 3, config.image_size, config.image_size});
  const Tensor rgb = ConvNextClassifier(network, info).logits(pixels);
  info.input.order = ChannelOrder::kBgr;
  ConvNextClassifier slow(network, info), fast(network, info, Precision::kF32);
  EXPECT_LT(relative(fast.logits(pixels), slow.logits(pixels)), kExactConvNext);
  EXPECT_GT(relative(slow.logits(pixels), rgb), 1e-2);
}

TEST(ConvNextEngine, LogitsAndPixelGradientsEqualLibtorchs) {
  for (const auto& config : {small_convnext(), tiny_like_config()}) {
    ConvNext network = random_network(config);
    ConvNextClassifier slow(network, info_of(config)), fast(network, info_of(config), Precision::kF32);
    ASSERT_FALSE(slow.engine_memory());
    ASSERT_TRUE(fast.engine_memory());
    torch::manual_seed(1);
    const Tensor pixels = torch::rand({3, 3, config.image_size, config.image_size}),
                 direction = torch::randn({3, config.classes});
    Tensor a = pixels.clone().requires_grad_(), b = pixels.clone().requires_grad_();
    const Tensor expected = slow.logits(a), found = fast.logits(b);
    EXPECT_LT(relative(found, expected), kExactConvNext);
    (expected * direction).sum().backward();
    (found * direction).sum().backward();
    EXPECT_LT(relative(b.grad(), a.grad()), kExactConvNext);
  }
}

TEST(ConvNextEngine, TapsAndOtherSizesStayOnLibtorch) {
  ConvNext network = random_network(small_convnext());
  ConvNextClassifier slow(network, info_of(small_convnext())),
      fast(network, info_of(small_convnext()), Precision::kF32);
  torch::manual_seed(2);
  const Tensor pixels = torch::rand({2, 3, 32, 32}), other = torch::rand({2, 3, 40, 40});
  Taps taps({"stage.1"});
  EXPECT_TRUE(torch::equal(fast.logits(pixels, &taps), slow.logits(pixels)));
  EXPECT_TRUE(taps.at("stage.1").defined());
  EXPECT_TRUE(torch::equal(fast.logits(other), slow.logits(other)));
}

TEST(ConvNextEngine, AnEncoderSeesTheSameStages) {
  ConvNext network = random_network(small_convnext());
  ConvNextClassifier slow(network, info_of(small_convnext())),
      fast(network, info_of(small_convnext()), Precision::kF32);
  torch::manual_seed(3);
  const Tensor pixels = torch::rand({2, 3, 32, 32});
  const std::vector<std::string> levels = {"stage.0", "stage.1", "stage.2"};
  const auto expected = encoder_from_target(slow, levels)->features(pixels),
             found = encoder_from_target(fast, levels)->features(pixels);
  ASSERT_EQ(found.size(), 3u);
  for (size_t k = 0; k < 3; ++k) {
    ASSERT_EQ(found[k].sizes(), expected[k].sizes());
    EXPECT_LT(relative(found[k], expected[k]), kExactConvNext) << levels[k];
    EXPECT_FALSE(torch::equal(found[k], expected[k])) << levels[k] << " did not run on the engine";
  }
}

TEST(ConvNextEngine, FeaturesAreTheLastStage) {
  const auto config = small_convnext();
  ConvNext network = random_network(config);
  ConvNextClassifier slow(network, info_of(config)), fast(network, info_of(config), Precision::kF32);
  torch::manual_seed(7);
  const Tensor pixels = torch::rand({2, 3, 32, 32});
  const Tensor expected = slow.features(pixels, {"features"})[0];
  const auto found = fast.features(pixels, {"stage.2", "features"});
  EXPECT_LT(relative(found[1], expected), kExactConvNext);
  EXPECT_FALSE(torch::equal(found[1], expected)) << "the engine did not run";
  EXPECT_TRUE(torch::equal(found[1], found[0]));
  EXPECT_LT(relative(fast.logits_from_features(found[1]), fast.logits(pixels)), kExactConvNext);
}

TEST(ConvNextEngine, FitsWholePanelsAndSizesThatEveryStageHalves) {
  InputSpec input;
  input.size = 32;
  ConvNextConfig config = small_convnext();
  EXPECT_TRUE(engine_fits(config, input));
  input.size = 36;
  EXPECT_FALSE(engine_fits(config, input));
  input.size = 32;
  config.widths[0] = 48;
  EXPECT_FALSE(engine_fits(config, input));
}

}  // namespace
}  // namespace aha
