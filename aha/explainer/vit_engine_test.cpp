#include "aha/networks/vit_engine.h"

#include <gtest/gtest.h>

#include "aha/attribution/chefer.h"
#include "aha/attribution/logit_attribution.h"
#include "aha/base/parallel.h"
#include "aha/explainer/explainer.h"
#include "aha/explainer/prior.h"
#include "aha/nn/module_state.h"
#include "aha/nn/trainable_testing.h"
#include "aha/testing/checks.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::relative;

VitConfig small_vit() {
  VitConfig c;
  c.image_size = 32;
  c.patch = 8;
  c.width = 64;
  c.depth = 3;
  c.heads = 2;
  c.mlp_hidden = 128;
  c.classes = 7;
  return c;
}

VitConfig dinov3_like() {
  VitConfig c = small_vit();
  c.rope = true;
  c.registers = 4;
  c.layer_scale = true;
  c.classes = 0;
  return c;
}

// Random everything, norms and biases too, so that folding them wrongly shows.
Vit random_network(const VitConfig& config) {
  Vit network(config);
  network->initialize(3);
  const torch::NoGradGuard no_grad;
  torch::manual_seed(5);
  for (auto& item : network->named_parameters()) {
    Tensor p = item.value();
    if (p.dim() >= 2) p.mul_(4);
    if (item.key().find("norm") != std::string::npos && item.key().ends_with("weight"))
      p.copy_(1 + 0.2 * torch::randn_like(p));
    if (item.key().ends_with("bias")) p.copy_(0.2 * torch::randn_like(p));
    if (item.key().ends_with("gamma")) p.copy_(0.5 + 0.2 * torch::randn_like(p));
  }
  freeze(*network);  // one that learns would not run on libtorch
  return network;
}

InputSpec input_of(const VitConfig& config) {
  InputSpec input;
  input.size = config.image_size;
  return input;
}

// 1e-4 is the promise of --precision f32.
constexpr double kExact = 1e-4;

// Rounded results in a row: patches, eight a block (trainable_block_test.cpp), the head; each a sum of at
// most as many terms as the MLP is wide.
double logits_tolerance(const VitConfig& c, int64_t passes, Precision precision = Precision::kF32) {
  return checks::tolerance_of(best_kernel_set(precision).format, passes * (8 * c.depth + 2),
                              std::max<int64_t>(c.mlp_hidden, 3 * c.patch * c.patch));
}

class EngineOf : public testing::TestWithParam<std::string> {
 protected:
  VitConfig config() const {
    VitConfig c = small_vit();
    if (GetParam() == "distilled") c.distilled = true;
    if (GetParam() == "layer_scale_and_registers") c.layer_scale = true, c.registers = 4;
    if (GetParam() == "odd_grid") c.image_size = 40;
    if (GetParam().starts_with("dinov3")) c.rope = c.layer_scale = true, c.registers = 4;
    if (GetParam().ends_with("swiglu")) c.swiglu = true;
    return c;
  }
};

TEST_P(EngineOf, LogitsAndPixelGradientsEqualLibtorchs) {
  Vit network = random_network(config());
  const InputSpec input = input_of(config());
  FrozenVit engine(frozen_weights_from(network, input), Precision::kF32);
  torch::manual_seed(1);
  const Tensor pixels = torch::rand({5, 3, input.size, input.size}), weights = torch::randn({5, 7});
  Tensor a = pixels.clone().requires_grad_(), b = pixels.clone().requires_grad_();
  const Tensor expected = network->forward(normalized(a, input)), found = engine.logits(b);
  EXPECT_LT(relative(found, expected), logits_tolerance(config(), 1));
  EXPECT_TRUE(torch::equal(engine.logits(pixels), found.detach())) << "with and without a gradient";
  (expected * weights).sum().backward();
  (found * weights).sum().backward();
  EXPECT_LT(relative(b.grad(), a.grad()), logits_tolerance(config(), 2));
}

INSTANTIATE_TEST_SUITE_P(Vits, EngineOf,
                         testing::Values("plain", "distilled", "layer_scale_and_registers", "odd_grid",
                                         "dinov3", "dinov3_swiglu"),
                         [](const auto& info) { return info.param; });

TEST(Engine, AnyThreadsAndAnySplitGiveTheSameBits) {
  Vit network = random_network(small_vit());
  FrozenVit engine(frozen_weights_from(network, input_of(small_vit())), Precision::kF32);
  torch::manual_seed(2);
  const Tensor pixels = torch::rand({7, 3, 32, 32});
  set_threads(1);
  const Tensor together = engine.logits(pixels);
  set_threads(3);
  EXPECT_TRUE(torch::equal(engine.logits(pixels), together));
  for (int64_t i = 0; i < 7; ++i)
    EXPECT_TRUE(torch::equal(engine.logits(pixels.slice(0, i, i + 1)), together.slice(0, i, i + 1)));
  set_threads(0);
}

// Large enough that its products, heads and norms are shared out.
TEST(Engine, OneImageHasTheSameBitsHoweverManyThreadsShareIt) {
  VitConfig c = small_vit();
  c.image_size = 96, c.width = 192, c.heads = 3, c.mlp_hidden = 768, c.depth = 2;
  Vit network = random_network(c);
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    FrozenVit engine(frozen_weights_from(network, input_of(c)), precision);
    torch::manual_seed(7);
    const Tensor pixels = torch::rand({3, 3, 96, 96}), classes = torch::tensor({1, 2, 3}, torch::kInt64);
    const auto answers = [&](int64_t first, int64_t n) {
      const Tensor x = pixels.narrow(0, first, n).clone().requires_grad_();
      const Tensor logits = engine.logits(x);
      logits.pow(2).sum().backward();
      return std::vector{logits.detach(), x.grad(),
                         engine.relevance(x.detach(), classes.narrow(0, first, n)).tokens};
    };
    set_threads(1);
    const auto expected = answers(0, 3);
    for (const int threads : {2, 3, 4}) {
      set_threads(threads);
      for (int64_t b = 0; b < 3; ++b) {
        const auto found = answers(b, 1);
        for (size_t i = 0; i < found.size(); ++i)
          EXPECT_TRUE(found[i].equal(expected[i].narrow(0, b, 1))) << threads << " threads, answer " << i;
      }
      const auto two = answers(0, 2);
      for (size_t i = 0; i < two.size(); ++i)
        EXPECT_TRUE(two[i].equal(expected[i].narrow(0, 0, 2))) << threads << " threads, answer " << i;
    }
  }
  set_threads(0);
}

TEST(Engine, WhatMayNotBeKeptIsComputedAgainToTheSameBits) {
  Vit network = random_network(small_vit());
  FrozenVit engine(frozen_weights_from(network, input_of(small_vit())), Precision::kF32);
  torch::manual_seed(3);
  const Tensor pixels = torch::rand({6, 3, 32, 32}), direction = torch::randn({6, 7});
  const auto gradient = [&] {
    Tensor x = pixels.clone().requires_grad_();
    (engine.logits(x) * direction).sum().backward();
    return x.grad();
  };
  set_threads(3);  // three chunks
  const Tensor kept = gradient();
  EXPECT_GT(engine.workspace_bytes(), 0);
  for (const int64_t bytes : {int64_t{0}, engine.workspace_bytes(), 2 * engine.workspace_bytes()}) {
    engine.keep_at_most(bytes);
    EXPECT_TRUE(torch::equal(gradient(), kept)) << bytes;
  }
  set_threads(0);
}

TEST(Engine, WhatIsSeenInBlocksEqualsLibtorchsTaps) {
  const VitConfig config = dinov3_like();
  Vit network = random_network(config);
  const InputSpec input = input_of(config);
  torch::manual_seed(3);
  const Tensor pixels = torch::rand({3, 3, 32, 32});
  Taps taps({"block.0", "block.2", "block.1.attention", "block.2.attention"});
  network->tokens(normalized(pixels, input), &taps);
  const auto check = [&](const KernelSet& kernels, double tolerance) {
    FrozenVit engine(frozen_weights_from(network, input), kernels);
    const auto found = engine.tapped(pixels, {{0}, {2, true}, {2}, {1, true}});
    EXPECT_LT(relative(found[0], taps.at("block.0")), tolerance);
    EXPECT_LT(relative(found[1], taps.at("block.2.attention").slice(2, 0, 1)), tolerance);
    EXPECT_LT(relative(found[2], taps.at("block.2")), tolerance);
    EXPECT_LT(relative(found[3], taps.at("block.1.attention").slice(2, 0, 1)), tolerance);
  };
  check(best_kernel_set(Precision::kF32), kExact);
  check(reference_kernels(Format::kBf16Pair), kExact);
  check(reference_kernels(Format::kBf16), 3 * 0x1p-8);  // three blocks, each of a few roundings to eight bits
}

TEST(Engine, AnEncoderGivesLibtorchsFeatures) {
  Vit network = random_network(dinov3_like());
  torch::manual_seed(6);
  const Tensor pixels = torch::rand({5, 3, 32, 32});
  for (const bool normalized : {false, true}) {
    EncoderInfo info;
    info.name = "small";
    info.normalized = normalized;
    ClassifierInfo sizes;
    sizes.input.size = 32;
    const std::vector<std::string> levels = {"block.0", "block.1"};
    const auto plain =
                   encoder_from_classifier(std::make_shared<NetworkClassifier>(network, sizes), levels, info),
               fast = encoder_from_classifier(
                   std::make_shared<NetworkClassifier>(network, sizes, Precision::kF32), levels, info);
    const auto expected = plain->features(pixels), found = fast->features(pixels);
    ASSERT_EQ(found.size(), 2u);
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(found[k].sizes(), (std::vector<int64_t>{5, 64, 4, 4}));
      EXPECT_LT(relative(found[k], expected[k]), kExact);
      EXPECT_FALSE(torch::equal(found[k], expected[k])) << "the engine did not run";
    }
    // Another size than the engine was made for.
    const Tensor larger = torch::rand({1, 3, 40, 48});
    EXPECT_TRUE(torch::equal(fast->features(larger)[1], plain->features(larger)[1]));
  }
}

TEST(Engine, ATargetGivesItsOwnTokens) {
  Vit network = random_network(small_vit());
  ClassifierInfo info;
  info.name = "small";
  info.input = input_of(small_vit());
  VitClassifier plain(network, info), fast(network, info, Precision::kF32);
  torch::manual_seed(8);
  const Tensor pixels = torch::rand({3, 3, 32, 32});
  const auto features = [&](Classifier& target, std::vector<std::string> levels) {
    return encoder_from_target(target, std::move(levels))->features(pixels);
  };
  // The second level joins two taps, the last block is whole: every token is wanted.
  const std::vector<std::string> seen = {"block.0", "block.2+block.1", "block.0+block.2.attention",
                                         "block.2.norm1"};
  const auto expected = features(plain, seen), found = features(fast, seen);
  for (size_t k = 0; k < seen.size(); ++k) {
    EXPECT_LT(relative(found[k], expected[k]), kExact);
    EXPECT_FALSE(torch::equal(found[k], expected[k])) << "the engine did not run";
  }
  const std::vector<std::string> inside = {"block.0+block.0.norm1"};
  EXPECT_TRUE(torch::equal(features(fast, inside)[0], features(plain, inside)[0]));
}

TEST_P(EngineOf, RelevanceIsCheferOfTheTaps) {
  Vit network = random_network(config());
  ClassifierInfo info;
  info.name = "small";
  info.input = input_of(config());
  VitClassifier plain(network, info), fast(network, info, Precision::kF32);
  torch::manual_seed(9);
  const int64_t size = info.input.size, patches = size * size / 64;
  const Tensor pixels = torch::rand({5, 3, size, size}), classes = torch::tensor({0, 2, 1, 2, 0});
  const Tensor expected = chefer_values(plain, pixels, classes), found = chefer_values(fast, pixels, classes);
  EXPECT_EQ(found.sizes(), (std::vector<int64_t>{5, patches}));
  EXPECT_GT(expected.std().item<double>(), 0);
  EXPECT_LT(relative(found, expected), kExact);
  EXPECT_FALSE(torch::equal(found, expected)) << "the engine did not run";
  EXPECT_TRUE(torch::equal(found.narrow(0, 3, 1),
                           chefer_values(fast, pixels.narrow(0, 3, 1), classes.narrow(0, 3, 1))));
  EXPECT_GT(relative(chefer_values(fast, pixels, (classes + 1) % 3), found), 1e-3);

  // What is seen on its forward pass is what is seen without it, the last block's tokens too.
  const auto encoder =
      encoder_from_target(fast, {fmt::format("block.0+block.{}.attention", config().depth - 1),
                                 fmt::format("block.{}", config().depth - 1)});
  ASSERT_TRUE(encoder->gives_relevance(fast));
  EXPECT_FALSE(encoder->gives_relevance(plain));
  for (int again = 0; again < 2; ++again) {
    const auto levels = encoder->features(pixels);
    for (const auto rule : {TokenRelevance::kChefer, TokenRelevance::kDirect}) {
      const auto both = encoder->features_and_relevance(pixels, classes, rule);
      ASSERT_TRUE(both);
      EXPECT_TRUE(torch::equal(
          both->values, rule == TokenRelevance::kChefer ? found : logit_values(fast, pixels, classes)));
      for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(torch::equal(both->levels.at(k), levels[k])) << k;
    }
  }
  EXPECT_FALSE(encoder->features_and_relevance(torch::rand({1, 3, size / 2, size / 2}),
                                               classes.narrow(0, 0, 1), TokenRelevance::kChefer));
  EXPECT_LT(relative(logit_values(fast, pixels, classes), logit_values(plain, pixels, classes)), kExact);
  EXPECT_LT(relative(logit_shares(fast, pixels, classes), logit_shares(plain, pixels, classes)), kExact);
}

struct Seen {
  int block;
  Tensor attention, gradient;
};
// What a visitor sees of each image, in its order. The tensors are kept, not copied.
std::vector<std::vector<Seen>> seen_in(Classifier& target, const Tensor& pixels, const Tensor& classes,
                                       const AttentionVisit& visit) {
  std::vector<std::vector<Seen>> seen(pixels.size(0));
  target.visit_attention(pixels, classes, visit,
                         [&](int64_t image, int block, const Tensor& attention, const Tensor& gradient) {
                           seen.at(image).push_back({block, attention, gradient});
                         });
  return seen;
}

using Visited = AttentionVisit::Gradient;
constexpr Visited kVisited[] = {Visited::kNone, Visited::kLogit, Visited::kReadOutClass,
                                Visited::kReadOutMean, Visited::kDirect};

ClassifierInfo info_of(const VitConfig& config) {
  ClassifierInfo info;
  info.name = "small";
  info.input = input_of(config);
  return info;
}

TEST_P(EngineOf, AttentionAndItsGradientEqualLibtorchs) {
  Vit network = random_network(config());
  VitClassifier plain(network, info_of(config()));
  torch::manual_seed(11);
  const int64_t size = config().image_size, tokens = size * size / 64 + network->prefix_tokens();
  const Tensor pixels = torch::rand({3, 3, size, size}), classes = torch::tensor({6, 0, 3});
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    VitClassifier fast(network, info_of(config()), precision);
    const double tolerance = logits_tolerance(config(), 2, precision);
    for (const Visited gradient : kVisited)
      for (int first = 0; first < config().depth; ++first) {
        SCOPED_TRACE(fmt::format("{} gradient {} from block {}",
                                 precision == Precision::kF32 ? "f32" : "bf16", static_cast<int>(gradient),
                                 first));
        const auto expected = seen_in(plain, pixels, classes, {gradient, first}),
                   found = seen_in(fast, pixels, classes, {gradient, first});
        for (int64_t b = 0; b < 3; ++b) {
          ASSERT_EQ(std::ssize(found[b]), config().depth - first);
          for (size_t i = 0; i < found[b].size(); ++i) {
            const Seen &f = found[b][i], &e = expected[b][i];
            EXPECT_EQ(f.block, config().depth - 1 - static_cast<int>(i));
            EXPECT_EQ(f.block, e.block);
            const int64_t Q = f.attention.size(1);
            EXPECT_EQ(f.attention.sizes(), (std::vector<int64_t>{config().heads, Q, tokens}));
            EXPECT_LT(relative(f.attention, e.attention.slice(1, 0, Q)), tolerance);
            EXPECT_FALSE(torch::equal(f.attention, e.attention.slice(1, 0, Q))) << "the engine did not run";
            ASSERT_EQ(f.gradient.defined(), gradient != Visited::kNone);
            if (gradient == Visited::kNone || gradient == Visited::kReadOutMean) {
              EXPECT_EQ(Q, tokens);
            }
            if (gradient == Visited::kNone) continue;
            EXPECT_GT(e.gradient.norm().item<double>(), 0);
            EXPECT_LT(relative(f.gradient, e.gradient.slice(1, 0, Q)), tolerance);
            EXPECT_EQ(e.gradient.slice(1, Q).abs().sum().item<double>(), 0);
          }
        }
      }
  }
}

TEST(Engine, GivesTheNetworkItsOrderOfChannels) {
  const VitConfig config = small_vit();
  Vit network = random_network(config);
  auto info = info_of(config);
  const Tensor pixels = torch::rand({2, 3, config.image_size, config.image_size});
  const Tensor rgb = VitClassifier(network, info).logits(pixels);
  info.input.order = ChannelOrder::kBgr;
  VitClassifier plain(network, info), fast(network, info, Precision::kF32);
  EXPECT_LT(relative(fast.logits(pixels), plain.logits(pixels)), kExact);
  EXPECT_GT(relative(plain.logits(pixels), rgb), 1e-2);
}

TEST(Engine, AttentionIsTheSameAloneAndWithAnyThreads) {
  VitConfig config = small_vit();
  config.distilled = true;
  Vit network = random_network(config);
  torch::manual_seed(12);
  const Tensor pixels = torch::rand({7, 3, 32, 32}), classes = torch::arange(7);
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    VitClassifier target(network, info_of(config), precision);
    for (const Visited gradient : kVisited) {
      const auto expect_same = [](const std::vector<Seen>& found, const std::vector<Seen>& expected) {
        ASSERT_EQ(found.size(), expected.size());
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_TRUE(torch::equal(found[i].attention, expected[i].attention));
          if (expected[i].gradient.defined()) {
            EXPECT_TRUE(torch::equal(found[i].gradient, expected[i].gradient));
          }
        }
      };
      set_threads(1);
      const auto together = seen_in(target, pixels, classes, {gradient, 1});
      set_threads(2);
      const auto shared = seen_in(target, pixels, classes, {gradient, 1});
      for (int64_t b = 0; b < 7; ++b) {
        expect_same(shared[b], together[b]);
        expect_same(seen_in(target, pixels.narrow(0, b, 1), classes.narrow(0, b, 1), {gradient, 1})[0],
                    together[b]);
      }
      set_threads(0);
    }
  }
}

TEST(Engine, WhoVisitsBlocksOrClassesThatAreNotThereIsTold) {
  Vit network = random_network(small_vit());
  VitClassifier target(network, info_of(small_vit()), Precision::kF32);
  const Tensor pixels = torch::rand({1, 3, 32, 32});
  const auto visit = [&](int64_t wanted, int first) {
    return checks::message_of([&] {
      seen_in(target, pixels, torch::tensor({wanted}), {Visited::kLogit, first});
    });
  };
  EXPECT_EQ(visit(1, 3), "attention from block 3 on: this network has blocks 0..2");
  EXPECT_EQ(visit(7, 0), "classes: expected 0..6, found 7..7");
  EXPECT_EQ(checks::message_of([&] {
              target.patch_subset_logits(pixels, torch::tensor({{{3, 16}}}));
            }),
            "patches: expected 0..15, found 3..16");
}

TEST_P(EngineOf, LogitsOfSubsetsEqualLibtorchs) {
  Vit network = random_network(config());
  VitClassifier plain(network, info_of(config()));
  torch::manual_seed(13);
  const int64_t size = config().image_size, N = size * size / 64, B = 3;
  const Tensor pixels = torch::rand({B, 3, size, size});
  // (B, S, n): different patches, in any order.
  const auto subsets = [&](int64_t S, int64_t n) {
    return torch::rand({B, S, N}).argsort(int64_t{2}).slice(2, 0, n).contiguous();
  };
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    VitClassifier fast(network, info_of(config()), precision);
    if (config().rope) {
      EXPECT_EQ(checks::message_of([&] { fast.patch_subset_logits(pixels, subsets(1, 2)); }),
                "a vision transformer with rotary positions cannot run on a part of its tokens");
      continue;
    }
    for (const int64_t n : {int64_t{1}, N / 2, N}) {
      const Tensor patches = subsets(5, n), found = fast.patch_subset_logits(pixels, patches);
      EXPECT_EQ(found.sizes(), (std::vector<int64_t>{B, 5, 7}));
      const Tensor expected = plain.patch_subset_logits(pixels, patches);
      EXPECT_LT(relative(found, expected), logits_tolerance(config(), 1, precision)) << n;
      EXPECT_FALSE(torch::equal(found, expected)) << "the engine did not run";
      for (int64_t b = 0; b < B; ++b)
        EXPECT_TRUE(torch::equal(
            fast.patch_subset_logits(pixels.narrow(0, b, 1), patches.narrow(0, b, 1).narrow(1, 3, 1))[0][0],
            found[b][3]));
      set_threads(1);
      EXPECT_TRUE(torch::equal(fast.patch_subset_logits(pixels, patches), found));
      set_threads(0);
    }
    const Tensor all = torch::arange(N).expand({B, 1, N});
    EXPECT_TRUE(torch::equal(fast.patch_subset_logits(pixels, all).squeeze(1), fast.logits(pixels)));
  }
}

TEST(Engine, AnExplainerTakesFeaturesAndPriorFromOneForward) {
  Vit network = random_network(small_vit());
  ClassifierInfo info;
  info.name = "small";
  info.input = input_of(small_vit());
  VitClassifier plain(network, info), fast(network, info, Precision::kF32);
  DecoderOptions options{.widths = {64, 64},
                         .scales = {2, 1},
                         .classes = 7,
                         .embedding = 8,
                         .channels = 16,
                         .top = 16,
                         .head = 16};
  const auto explainer_of = [&](Classifier& target) {
    return std::make_unique<Explainer>(encoder_from_target(target, {"block.0", "block.2"}), options, &target);
  };
  EXPECT_FALSE(explainer_of(fast)->shares_forward());  // no prior
  options.prior = "chefer";
  EXPECT_FALSE(explainer_of(plain)->shares_forward());
  const auto explainer = explainer_of(fast);
  ASSERT_TRUE(explainer->shares_forward());
  torch::manual_seed(10);
  const Tensor pixels = torch::rand({2, 3, 32, 32}), classes = torch::tensor({0, 2});
  const Features found = explainer->features(pixels, classes);
  const auto levels = explainer->encoder().features(pixels);
  EXPECT_TRUE(torch::equal(found.prior, prior_maps("chefer", fast, pixels, classes).order));
  ASSERT_EQ(found.levels.size(), 2u);
  for (size_t k = 0; k < 2; ++k) EXPECT_TRUE(torch::equal(found.levels[k], levels[k])) << k;
}

TEST_P(EngineOf, PerturbedScoresAndTheirGradientEqualTheLongWay) {
  Vit network = random_network(config());
  const InputSpec input = input_of(config());
  const int64_t size = input.size;
  FrozenVit engine(frozen_weights_from(network, input), Precision::kF32);
  torch::manual_seed(4);
  constexpr int64_t B = 3, S = 5, K = 9;
  PerturbedImages p;
  p.pixels = torch::rand({B, 3, size, size});
  p.reference = torch::rand({B, 3, size, size});
  const Tensor cell = (torch::arange(size) * 3 / size).to(torch::kLong);
  p.region = (cell.unsqueeze(1) * 3 + cell.unsqueeze(0)).to(torch::kInt32);  // a 3 x 3 grid that cuts patches
  p.keep = torch::rand({B, S, K});
  p.classes = torch::tensor({1, 4, 6});

  Tensor keep = p.keep.clone().requires_grad_();
  const Tensor shown = keep.index_select(2, p.region.flatten().to(torch::kLong)).view({B, S, 1, size, size});
  const Tensor images =
      p.reference.unsqueeze(1) + shown * (p.pixels - p.reference).unsqueeze(1);  // (B, S, 3, 32, 32)
  const Tensor probs =
      torch::softmax(network->forward(normalized(images.flatten(0, 1), input)), 1).view({B, S, -1});
  const Tensor expected = probs.gather(2, p.classes.view({B, 1, 1}).expand({B, S, 1})).squeeze(2);
  expected.sum().backward();

  const auto found = engine.perturbed_scores(p, true);
  EXPECT_LT(relative(found.scores, expected), logits_tolerance(config(), 1));
  EXPECT_LT(relative(found.gradient, keep.grad()), logits_tolerance(config(), 2));
  EXPECT_TRUE(torch::equal(engine.perturbed_scores(p, false).scores, found.scores));
}

}  // namespace
}  // namespace aha
