// Direct logit attribution on a small transformer: its shares and what the blocks write otherwise add up to
// the logit, and are those that autograd finds.
#include "aha/attribution/logit_attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/attribution/attention_maps.h"
#include "aha/methods/catalog.h"
#include "aha/methods/patch_maps.h"
#include "aha/testing/checks.h"
#include "aha/testing/gradient.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

// The tiny ViT with norms that are not the identity, and all it computes for one image.
struct Looked {
  Vit vit = checks::tiny_vit();
  VitClassifier target{vit, checks::plain_info("tiny_vit", 16)};
  Tensor pixels = torch::empty({1, 3, 16, 16});
  std::map<std::string, Tensor> tapped, seen;  // with the batch axis, and of the image
  Tensor logits;

  Looked() {
    checks::fill_with_wave(pixels, 5, 0.5);
    pixels += 0.5;
    int m = 50;
    for (auto& parameter : vit->named_parameters())
      if (parameter.key().find("norm") != std::string::npos)
        checks::fill_with_wave(parameter.value(), ++m, 0.8);
    std::vector<std::string> names = {"embed"};
    for (int i = 0; i < 3; ++i)
      for (const char* part : {"", ".attention", ".attention_out"})
        names.push_back(fmt::format("block.{}{}", i, part));
    for (auto& parameter : vit->parameters()) parameter.requires_grad_(true);
    Taps taps(names);
    logits = target.logits(pixels, &taps)[0];
    for (const auto& name : names) {
      tapped[name] = taps.at(name);
      seen[name] = tapped[name][0];
    }
  }

  // d (logit above the mean) / d class token behind the last block, the norm's deviation fixed.
  Tensor direction(int64_t wanted) {
    const Tensor rows = vit->head->weight, z = seen["block.2"][0];
    const Tensor g = (rows[wanted] - rows.mean(0)) * vit->norm->weight;
    return ((g - g.mean()) / torch::sqrt(z.var(0, false) + 1e-6)).detach();
  }

  // (T) of each block, first block first.
  std::vector<Tensor> shares(int64_t wanted) {
    std::vector<Tensor> out(3);
    target.visit_attention(pixels, torch::tensor({wanted}), {AttentionVisit::Gradient::kDirect, 0},
                           [&](int64_t, int block, const Tensor& a, const Tensor& g) {
                             out[block] = direct_share(a, g, false).detach();
                           });
    return out;
  }
};

TEST(LogitAttribution, SharesAndTheRestAddUpToTheLogit) {
  Looked looked;
  auto& seen = looked.seen;
  for (const int64_t wanted : {0, 3}) {
    const Tensor g = looked.direction(wanted);
    const auto shares = looked.shares(wanted);
    // What is not attention: the class token itself, biases, MLPs, and the norm's bias with the head's.
    const auto row = [&](const std::string& name) { return seen[name][0]; };
    Tensor rest = g.dot(row("embed")), total = torch::zeros({});
    for (int i = 0; i < 3; ++i) {
      const auto name = fmt::format("block.{}", i),
                 before = i == 0 ? "embed" : fmt::format("block.{}", i - 1);
      const Tensor bias = looked.vit->blocks[i]->as<TransformerBlock>()->attn->proj->bias;
      rest = rest + g.dot(bias) + g.dot(row(name) - row(before) - row(name + ".attention_out"));
      total = total + shares[i].sum();
      EXPECT_NEAR(shares[i].sum().item<double>(), g.dot(row(name + ".attention_out") - bias).item<double>(),
                  1e-4);
    }
    const Tensor rows = looked.vit->head->weight, biases = looked.vit->head->bias;
    rest = rest + (rows[wanted] - rows.mean(0)).dot(looked.vit->norm->bias) + biases[wanted] - biases.mean();
    const double logit = (looked.logits[wanted] - looked.logits.mean()).item<double>();
    EXPECT_NEAR((total + rest).item<double>(), logit, 1e-4 * (1 + std::abs(logit)));
    EXPECT_GT(total.abs().item<double>(), 1e-2);
  }
}

TEST(LogitAttribution, SharesAreThoseOfAutograd) {
  Looked looked;
  const Tensor g = looked.direction(2);
  const auto shares = looked.shares(2);
  for (int i = 0; i < 3; ++i) {
    const auto name = fmt::format("block.{}", i);
    const Tensor attention = looked.tapped[name + ".attention"];  // (1, heads, T, T)
    const Tensor gradient =
        torch::autograd::grad({looked.seen[name + ".attention_out"][0].dot(g)}, {attention}, {}, true)[0];
    const Tensor expected = (attention * gradient)[0].select(1, 0).sum(0).detach();  // (T)
    EXPECT_LT(checks::relative(shares[i], expected), 1e-5) << i;
  }
}

TEST(LogitAttribution, TheMapIsTheSumOverTheLastBlocks) {
  Looked looked;
  const auto shares = looked.shares(1);
  const auto map = [&](const std::string& spec, int64_t wanted = 1) {
    return make_method(spec, {looked.target})
        ->attribute(looked.pixels, torch::tensor({wanted}), std::vector<uint64_t>{1}, Context())
        .maps;
  };
  const auto expected = [&](const Tensor& tokens) {
    return upsampled(grid_from_patches(tokens.slice(0, 1).unsqueeze(0)), 16, 16);
  };
  EXPECT_TRUE(
      torch::allclose(map("logit-attribution"), expected(shares[0] + shares[1] + shares[2]), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(map("logit-attribution:blocks=1"), expected(shares[2]), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(map("logit-attribution:blocks=3"), map("logit-attribution"), 1e-5, 1e-6));
  EXPECT_GE(map("logit-attribution:relu=true").min().item<float>(), 0);
  float lowest = 0;  // signed: the shares of all classes are around their mean
  for (int64_t wanted = 0; wanted < 4; ++wanted)
    lowest = std::min(lowest, map("logit-attribution", wanted).min().item<float>());
  EXPECT_LT(lowest, 0);
  EXPECT_THAT(checks::message_of([&] { map("logit-attribution:blocks=4"); }), testing::HasSubstr("0..3"));
}

}  // namespace
}  // namespace aha
