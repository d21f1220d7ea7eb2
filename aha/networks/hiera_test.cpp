#include "aha/networks/hiera.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/parallel.h"
#include "aha/networks/catalog.h"
#include "aha/networks/network_classifier.h"
#include "aha/nn/module_state.h"
#include "aha/testing/checks.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::relative;

// Windows of 2 and 3 tokens, the third block global, three stages.
HieraConfig small_hiera() {
  HieraConfig c;
  c.image_size = 64, c.width = 8, c.heads = 2, c.depths = {1, 2, 2}, c.windows = {4, 2, 3};
  c.global_blocks = {2}, c.position_side = 3;
  return c;
}

// No bias is zero, no norm the identity.
Hiera random_hiera(const HieraConfig& config) {
  Hiera network(config);
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  for (auto& item : network->named_parameters()) {
    auto& p = item.value();
    const bool norm = item.key().find("norm") != std::string::npos && item.key().ends_with(".weight");
    p.copy_(torch::randn_like(p) * (p.dim() == 2 ? 1 / std::sqrt(static_cast<double>(p.size(1))) : 0.3));
    if (norm) p.add_(1);
  }
  freeze(*network);
  return network;
}

ClassifierInfo hiera_info(int size) {
  ClassifierInfo info;
  info.name = "hiera";
  info.input.size = size;
  return info;
}

// A block written out token by token: every token of the output asks where its window is.
Tensor slow_block(HieraBlockImpl& block, const Tensor& x) {
  const auto& o = block.options;
  const int64_t H = x.size(0), W = x.size(1), step = o.halving ? 2 : 1, d = o.width / o.heads;
  const Tensor normed = block.norm1(x);  // (H, W, inputs)
  const int64_t rows = o.window ? o.window : H, columns = o.window ? o.window : W;
  Tensor out = torch::zeros({H / step, W / step, o.width});
  const auto max_of_four = [](const std::function<Tensor(int64_t, int64_t)>& value, int64_t y, int64_t x) {
    return torch::max(torch::max(value(2 * y, 2 * x), value(2 * y, 2 * x + 1)),
                      torch::max(value(2 * y + 1, 2 * x), value(2 * y + 1, 2 * x + 1)));
  };
  // Beyond the border a token is zeros, and its query, key and value are the biases.
  const Tensor inside = block.attn->qkv(normed), beyond = block.attn->qkv(torch::zeros({o.inputs}));
  const auto qkv = [&](int64_t y, int64_t x) { return y < H && x < W ? inside[y][x] : beyond; };
  for (int64_t i = 0; i < H / step; ++i)
    for (int64_t j = 0; j < W / step; ++j) {
      const auto query_at = [&](int64_t y, int64_t x) { return qkv(y, x).slice(0, 0, o.width); };
      const Tensor query = o.halving ? max_of_four(query_at, i, j) : query_at(i, j);
      const int64_t top = i * step / rows * rows, left = j * step / columns * columns;
      std::vector<Tensor> keys, values;
      for (int64_t y = top; y < top + rows; ++y)
        for (int64_t x = left; x < left + columns; ++x) {
          keys.push_back(qkv(y, x).slice(0, o.width, 2 * o.width));
          values.push_back(qkv(y, x).slice(0, 2 * o.width));
        }
      std::vector<Tensor> heads;
      for (int64_t h = 0; h < o.heads; ++h) {
        const auto of_head = [&](const Tensor& t) { return t.slice(-1, h * d, (h + 1) * d); };
        const Tensor scores =
            of_head(torch::stack(keys)).matmul(of_head(query)) / std::sqrt(static_cast<double>(d));
        heads.push_back(torch::softmax(scores, 0).matmul(of_head(torch::stack(values))));
      }
      const auto projected = [&](int64_t y, int64_t x) { return block.proj(normed[y][x]); };
      const Tensor before = o.halving ? max_of_four(projected, i, j) : x[i][j];
      const Tensor middle = before + block.attn->proj(torch::cat(heads));
      const Tensor hidden = block.mlp->fc1(block.norm2(middle));
      const Tensor gelu = hidden * 0.5 * (1 + torch::erf(hidden / std::sqrt(2.0)));
      out[i][j] = middle + block.mlp->fc2(gelu);
    }
  return out;
}

TEST(Hiera, ABlockLooksWithinItsWindows) {
  const torch::NoGradGuard no_grad;
  auto network = random_hiera(small_hiera());
  torch::manual_seed(5);
  for (const auto& [h, w] : {std::pair{12, 12}, std::pair{8, 6}, std::pair{9, 7}})  // whole windows, and not
    for (size_t i = 0; i < network->blocks->size(); ++i) {
      auto& block = *network->blocks[i]->as<HieraBlock>();
      const Tensor x = torch::randn({1, h, w, block.options.inputs});
      EXPECT_LT(relative(block.forward(x)[0], slow_block(block, x[0])), 1e-5)
          << "block " << i << " of " << h << " x " << w;
    }
}

TEST(Hiera, PlacesAreACoarseMapAndTiles) {
  auto network = random_hiera(small_hiera());
  {
    const torch::NoGradGuard no_grad;
    network->patch_embed->named_parameters()["proj.weight"].zero_();
    network->patch_embed->named_parameters()["proj.bias"].zero_();
  }
  for (const auto& [h, w] : {std::pair{32, 48}, std::pair{30, 41}}) {  // 8 x 12 tokens, 8 x 11
    Taps taps({"embed"});
    network->forward(torch::rand({1, 3, h, w}), &taps);
    const Tensor found = taps.at("embed");
    const Tensor coarse = at::upsample_bicubic2d(
        network->pos_embed, std::vector<int64_t>{found.size(2), found.size(3)}, /*align_corners=*/false);
    for (int64_t y = 0; y < found.size(2); ++y)
      for (int64_t x = 0; x < found.size(3); ++x) {
        const Tensor expected =
            coarse.select(3, x).select(2, y) + network->pos_embed_window.select(3, x % 4).select(2, y % 4);
        ASSERT_LT(relative(found.select(3, x).select(2, y), expected), 1e-5) << y << " " << x;
      }
  }
}

TEST(Hiera, HasTheTapsOfItsStages) {
  auto network = random_hiera(small_hiera());
  EXPECT_EQ(
      network->tap_names(),
      (std::vector<std::string>{"embed", "stage.0.block.0", "stage.0", "stage.1.block.0", "stage.1.block.1",
                                "stage.1", "stage.2.block.0", "stage.2.block.1", "stage.2"}));
  EXPECT_EQ(network->default_levels(), (std::vector<std::string>{"stage.0", "stage.1", "stage.2"}));
  Taps taps(network->tap_names());
  const Tensor pooled = network->forward(torch::rand({2, 3, 64, 48}), &taps);
  EXPECT_EQ(taps.at("embed").sizes(), (std::vector<int64_t>{2, 8, 16, 12}));
  EXPECT_EQ(taps.at("stage.0").sizes(), (std::vector<int64_t>{2, 8, 16, 12}));
  EXPECT_EQ(taps.at("stage.1.block.0").sizes(), (std::vector<int64_t>{2, 16, 8, 6}));
  EXPECT_EQ(taps.at("stage.2").sizes(), (std::vector<int64_t>{2, 32, 4, 3}));
  EXPECT_TRUE(taps.at("stage.2").equal(taps.at("stage.2.block.1")));
  EXPECT_LT(relative(pooled, taps.at("stage.2").mean({2, 3})), 1e-6);
}

TEST(Hiera, GivesTheSameBitsInAnyBatchAndForAnyNumberOfThreads) {
  NetworkClassifier encoder(random_hiera(small_hiera()), hiera_info(52), Precision::kF32);
  ASSERT_TRUE(encoder.engine_memory());
  const Tensor pixels = torch::rand({5, 3, 52, 52});
  std::vector<Tensor> first;
  for (const int count : {1, 2}) {
    Context context;
    context.threads = count;
    start_compute(context);
    const auto levels = encoder.features(pixels, encoder.default_levels());
    if (first.empty()) first = levels;
    const auto alone = encoder.features(pixels.narrow(0, 3, 1), encoder.default_levels());
    for (size_t s = 0; s < levels.size(); ++s) {
      EXPECT_TRUE(levels[s].equal(first[s]));
      EXPECT_TRUE(alone[s].equal(first[s].narrow(0, 3, 1)));
    }
  }
  start_compute({});
}

TEST(Hiera, ReadsItsSizesFromPublicWeights) {
  const auto config = small_hiera();
  auto network = random_hiera(config);
  const auto ours = table_from_state(*network);
  const Tensor x = torch::rand({1, 3, 64, 64});
  for (const std::string prefix : {"model.image_encoder.trunk.", "trunk.", ""}) {
    TensorTable theirs;
    for (const auto& [canonical, view] : ours.tensors) {
      std::string name = canonical;
      for (const auto& [from, to] :
           {std::pair{".mlp.fc1.", ".mlp.layers.0."}, {".mlp.fc2.", ".mlp.layers.1."}})
        if (const auto at = name.find(from); at != std::string::npos)
          name.replace(at, std::string(from).size(), to);
      theirs.tensors[prefix + name] = view;
    }
    if (prefix == "model.image_encoder.trunk.") {  // what else is in a checkpoint of SAM 2
      for (const std::string other :
           {"model.maskmem_tpos_enc", "model.image_encoder.neck.convs.0.conv.weight",
            "model.sam_mask_decoder.iou_token.weight"})
        theirs.tensors[other] = view_from_floats({1}, {1.0f});
    }
    const auto weights = canonical_weights(theirs);
    EXPECT_EQ(weights.source, "sam2");
    const auto& family = family_of(weights);
    const auto known = json_from_config(config);
    EXPECT_EQ(family.config_from_weights(weights, known), known);
    const auto again = family.make(known, "test");
    again->load_weights(weights.table);
    EXPECT_TRUE(again->forward(x).equal(network->forward(x)));
    theirs.tensors[prefix + "blocks.0.attn.bias"] = view_from_floats({1}, {1.0f});
    EXPECT_THAT(checks::message_of([&] { canonical_weights(theirs); }),
                testing::HasSubstr("blocks.0.attn.bias"));
  }
  EXPECT_EQ(canonical_weights(ours).source, "aha");
}

TEST(Hiera, IsOneOfTheKnownArchitectures) {
  const auto& tiny = architecture_named("hiera_tiny");
  EXPECT_EQ(tiny.kind, "encoder");
  const auto network = family_of(tiny).make(tiny.config, "test");
  const auto weights = canonical_weights(table_from_state(network->module()));
  ASSERT_TRUE(fitting_architecture(weights));
  EXPECT_EQ(fitting_architecture(weights)->name, "hiera_tiny");
  std::string why;
  config_as(architecture_named("hiera_small"), weights, why);
  EXPECT_EQ(why, "depths 1,2,7,2 instead of 1,2,11,2");
  EXPECT_EQ(network->size_refusal(28), "at least 29 pixels");
  EXPECT_EQ(network->size_refusal(29), "");
  EXPECT_EQ(network->forward(torch::rand({1, 3, 29, 29})).sizes(), (std::vector<int64_t>{1, 768}));
  EXPECT_THAT(checks::message_of([&] {
                network->forward(torch::rand({1, 3, 28, 64}));
              }),
              testing::HasSubstr("at least 29 pixels, found 28 x 64"));
}

TEST(Hiera, RefusesSizesThatDoNotFit) {
  const auto refused = [](const std::function<void(HieraConfig&)>& change) {
    auto config = small_hiera();
    change(config);
    return checks::message_of([&] { Hiera network(config); });
  };
  EXPECT_THAT(refused([](auto& c) { c.windows = {4, 2}; }), testing::HasSubstr("found 2 and 3"));
  EXPECT_THAT(refused([](auto& c) { c.windows = {3, 2, 3}; }), testing::HasSubstr("an even side"));
  EXPECT_THAT(refused([](auto& c) { c.heads = 3; }), testing::HasSubstr("3 heads"));
}

}  // namespace
}  // namespace aha
