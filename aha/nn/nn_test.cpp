#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/nn/conv_block.h"
#include "aha/nn/module_state.h"
#include "aha/nn/patch_embed.h"
#include "aha/nn/taps.h"
#include "aha/nn/transformer_block.h"

namespace aha {
namespace {

void fill(torch::nn::Module& module, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  for (auto& parameter : module.parameters()) parameter.normal_(0, 0.5, generator);
}

double distance(const Tensor& a, const Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(Taps, KeepOnlyWhatWasAskedFor) {
  Taps taps({"a"});
  taps.offer("a", torch::ones({1}));
  taps.offer("b", torch::ones({1}));
  EXPECT_EQ(taps.at("a").item<float>(), 1);
  EXPECT_THROW(taps.at("b"), Error);
  taps.check({"a", "b"}, "net");
  try {
    taps.check({"b", "c"}, "net");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("unknown net tap 'a'"));
    EXPECT_THAT(error.what(), testing::HasSubstr("available: b, c"));
  }
}

// One query at a time, straight from the formula.
TEST(Attention, IsTheWrittenOutSum) {
  Attention attention(AttentionOptions{8, 2});
  fill(*attention, 1);
  const auto x = torch::randn({2, 5, 8});
  Taps taps({"b.attention"});
  const auto out = attention->forward(x, nullptr, &taps, "b");
  const auto qkv = attention->qkv(x);  // (2, 5, 24)
  auto joined = torch::zeros({2, 5, 8});
  for (int b = 0; b < 2; ++b)
    for (int head = 0; head < 2; ++head)
      for (int t = 0; t < 5; ++t) {
        const auto q = qkv[b][t].slice(0, head * 4, head * 4 + 4);
        const auto K = qkv[b].slice(1, 8 + head * 4, 8 + head * 4 + 4),
                   V = qkv[b].slice(1, 16 + head * 4, 16 + head * 4 + 4);
        const auto weights = torch::softmax(K.mv(q) / 2, 0);
        EXPECT_LT(distance(taps.at("b.attention")[b][head][t], weights), 1e-6);
        joined[b][t].slice(0, head * 4, head * 4 + 4).copy_(V.t().mv(weights));
      }
  EXPECT_LT(distance(out, attention->proj(joined)), 1e-5);
}

TEST(Rope, HasThePublishedPeriods) {
  const auto periods = rope_periods(64);
  ASSERT_EQ(periods.size(0), 16);
  EXPECT_NEAR(periods[1].item<double>(), 1.333521, 1e-6);
  EXPECT_NEAR(periods[15].item<double>(), 74.98942, 1e-4);
}

TEST(Rope, TurnsPatchesAndLeavesThePrefixAlone) {
  const auto table = rope_table(rope_periods(8), 2, 3);
  EXPECT_EQ(table.cos.sizes(), (std::vector<int64_t>{6, 8}));
  const auto x = torch::randn({1, 1, 7, 8});
  const auto turned = rotated(x, table);
  EXPECT_TRUE(turned.slice(2, 0, 1).equal(x.slice(2, 0, 1)));
  EXPECT_LT(distance(turned.norm(2, -1), x.norm(2, -1)), 1e-5);
  // Patch (1, 2), first pair: y = 2 * 1.5 / 2 - 1 = 0.5, angle 2 pi * 0.5 = pi.
  EXPECT_NEAR(turned[0][0][6][0].item<double>(), -x[0][0][6][0].item<double>(), 1e-5);
}

TEST(Rope, DependsOnlyOnTheDistanceOfTwoPatches) {
  const auto table = rope_table(rope_periods(8), 1, 4);
  const auto q = torch::randn({8}).expand({1, 1, 4, 8}), k = torch::randn({8}).expand({1, 1, 4, 8});
  const auto scores = torch::matmul(rotated(q, table), rotated(k, table).transpose(-2, -1))[0][0];
  EXPECT_NEAR(scores[0][1].item<double>(), scores[2][3].item<double>(), 1e-5);
}

TEST(TransformerBlock, AddsItsTwoScaledBranches) {
  TransformerBlock block(TransformerBlockOptions{8, 2, 16, 1e-6, true, true});
  fill(*block, 2);
  const auto x = torch::randn({1, 4, 8});
  const auto middle = x + block->attn(block->norm1(x)) * block->ls1->gamma;
  const auto n = block->norm2(middle);
  const auto expected =
      middle + block->mlp->w3(torch::silu(block->mlp->w1(n)) * block->mlp->w2(n)) * block->ls2->gamma;
  EXPECT_LT(distance(block->forward(x), expected), 1e-6);
}

TEST(PatchEmbed, ReadsThePatchesRowByRow) {
  PatchEmbed embed(PatchEmbedOptions{2, 5});
  const auto x = torch::randn({1, 3, 4, 7});  // the seventh column is dropped
  const auto tokens = embed->forward(x);
  EXPECT_EQ(tokens.sizes(), (std::vector<int64_t>{1, 6, 5}));
  const auto patch = x[0].slice(1, 2, 4).slice(2, 2, 4).flatten();  // row 1, column 1: token 4
  const auto expected = embed->proj->weight.flatten(1).mv(patch) + embed->proj->bias;
  EXPECT_LT(distance(tokens[0][4], expected), 1e-5);
}

TEST(ChannelNorm, NormalizesEachPixelOverItsChannels) {
  ChannelNorm norm(6);
  const auto y = norm->forward(torch::randn({2, 6, 3, 3}) * 5 + 1);
  EXPECT_LT(y.mean(1).abs().max().item<double>(), 1e-5);
  EXPECT_LT(distance(y.var(1, false), torch::ones({2, 3, 3})), 1e-4);
}

TEST(ConvBlock, IsTheSameInEitherMemoryOrder) {
  ConvBlock block(6);
  fill(*block, 3);
  const auto x = torch::randn({2, 6, 9, 9});
  EXPECT_LT(distance(block->forward(x), block->forward(x.contiguous(at::MemoryFormat::ChannelsLast))), 1e-4);
}

TEST(State, GoesToATableAndBack) {
  TransformerBlock a(TransformerBlockOptions{8, 2, 16}), b(TransformerBlockOptions{8, 2, 16});
  fill(*a, 4);
  load_state(*b, table_from_state(*a), "block");
  const auto x = torch::randn({1, 4, 8});
  EXPECT_TRUE(a->forward(x).equal(b->forward(x)));
  EXPECT_EQ(parameter_count(*a), 600);  // qkv 216, proj 72, fc1 144, fc2 136, norms 32
  freeze(*a);
  for (const auto& parameter : a->parameters()) EXPECT_FALSE(parameter.requires_grad());
}

TEST(State, NamesWhatIsMissingAndChangesNothing) {
  TransformerBlock block(TransformerBlockOptions{8, 2, 16});
  auto table = table_from_state(*block);
  table.tensors.erase("mlp.fc1.bias");
  table.tensors["norm1.weight"] = view_from_floats({8}, std::vector<float>(8, 5));
  try {
    load_state(*block, table, "block");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("mlp.fc1.bias"));
  }
  EXPECT_EQ(block->norm1->weight[0].item<float>(), 1);
}

TEST(State, NamesWeightsThatAreNotFiniteAndChangesNothing) {
  TransformerBlock block(TransformerBlockOptions{8, 2, 16});
  auto table = table_from_state(*block);
  table.tensors["norm1.weight"] = view_from_floats({8}, std::vector<float>(8, 5));
  std::vector<float> bias(16, 1e38f);  // their sum is infinite, they are not
  table.tensors["mlp.fc1.bias"] = view_from_floats({16}, bias);
  bias[3] = std::nanf(""), bias[7] = -INFINITY;
  auto bad = table;
  bad.tensors["mlp.fc1.bias"] = view_from_floats({16}, bias);
  try {
    load_state(*block, bad, "block");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("mlp.fc1.bias"), testing::HasSubstr("2 of 16")));
  }
  EXPECT_EQ(block->norm1->weight[0].item<float>(), 1);
  load_state(*block, table, "block");
  EXPECT_EQ(block->norm1->weight[0].item<float>(), 5);
}

}  // namespace
}  // namespace aha
