#include "aha/weights/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "aha/base/error.h"
#include "aha/testing/renamed_weights.h"
#include "aha/weights/names_rules.h"
#include "aha/weights/safetensors.h"

namespace aha {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Shapes = std::map<std::string, std::vector<int64_t>>;

// Every element of every tensor has its own value, so that nothing can be exchanged unnoticed.
TensorTable filled(const Shapes& shapes) {
  TensorTable table;
  table.source = "net.pth";
  float next = 1;
  for (const auto& [name, shape] : shapes) {
    std::vector<float> values(std::accumulate(shape.begin(), shape.end(), size_t{1}, std::multiplies<>()));
    for (float& value : values) value = next++;
    table.tensors[name] = view_from_floats(shape, values);
  }
  return table;
}

void add_affine(Shapes& shapes, const std::string& name, std::vector<int64_t> weight) {
  shapes[name + ".bias"] = {weight[0]};
  shapes[name + ".weight"] = std::move(weight);
}

constexpr int64_t D = 4;

Shapes vit_shapes(int blocks = 2) {
  Shapes shapes = {{"cls_token", {1, 1, D}}, {"pos_embed", {1, 10, D}}};
  add_affine(shapes, "patch_embed.proj", {D, 3, 2, 2});
  for (int i = 0; i < blocks; ++i) {
    const std::string block = fmt::format("blocks.{}.", i);
    add_affine(shapes, block + "norm1", {D});
    add_affine(shapes, block + "attn.qkv", {3 * D, D});
    add_affine(shapes, block + "attn.proj", {D, D});
    add_affine(shapes, block + "norm2", {D});
    add_affine(shapes, block + "mlp.fc1", {4 * D, D});
    add_affine(shapes, block + "mlp.fc2", {D, 4 * D});
  }
  add_affine(shapes, "norm", {D});
  add_affine(shapes, "head", {5, D});
  return shapes;
}

Shapes distilled_shapes() {
  Shapes shapes = vit_shapes();
  shapes["dist_token"] = {1, 1, D};
  shapes["pos_embed"] = {1, 11, D};
  add_affine(shapes, "head_dist", {5, D});
  return shapes;
}

Shapes encoder_shapes() {
  Shapes shapes = vit_shapes();
  shapes.erase("head.weight");
  shapes.erase("head.bias");
  return shapes;
}

Shapes dinov2_shapes() {
  Shapes shapes = encoder_shapes();
  shapes["reg_token"] = {1, 4, D};
  for (const char* name :
       {"blocks.0.ls1.gamma", "blocks.0.ls2.gamma", "blocks.1.ls1.gamma", "blocks.1.ls2.gamma"})
    shapes[name] = {D};
  return shapes;
}

Shapes dinov3_shapes(bool swiglu) {
  Shapes shapes = dinov2_shapes();
  shapes.erase("pos_embed");
  if (!swiglu) return shapes;
  for (const std::string mlp : {"blocks.0.mlp.", "blocks.1.mlp."}) {
    for (const char* part : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}) shapes.erase(mlp + part);
    add_affine(shapes, mlp + "w1", {4 * D, D});
    add_affine(shapes, mlp + "w2", {4 * D, D});
    add_affine(shapes, mlp + "w3", {D, 4 * D});
  }
  return shapes;
}

Shapes convnext_shapes() {
  Shapes shapes;
  const std::vector<int64_t> widths = {2, 3, 4, 5}, depths = {1, 1, 2, 1};
  add_affine(shapes, "stem.0", {2, 3, 4, 4});
  add_affine(shapes, "stem.1", {2});
  for (size_t s = 0; s < 4; ++s) {
    const int64_t w = widths[s];
    if (s > 0) {
      add_affine(shapes, fmt::format("stages.{}.downsample.0", s), {widths[s - 1]});
      add_affine(shapes, fmt::format("stages.{}.downsample.1", s), {w, widths[s - 1], 2, 2});
    }
    for (int64_t j = 0; j < depths[s]; ++j) {
      const std::string block = fmt::format("stages.{}.blocks.{}.", s, j);
      shapes[block + "gamma"] = {w};
      add_affine(shapes, block + "conv_dw", {w, 1, 7, 7});
      add_affine(shapes, block + "norm", {w});
      add_affine(shapes, block + "mlp.fc1", {4 * w, w});
      add_affine(shapes, block + "mlp.fc2", {w, 4 * w});
    }
  }
  add_affine(shapes, "head.norm", {5});
  add_affine(shapes, "head.fc", {5, 5});
  return shapes;
}

// Where keys have no bias, theirs is zero.
void clear_key_biases(TensorTable& table) {
  for (auto& [name, view] : table.tensors) {
    if (!name.ends_with(".attn.qkv.bias")) continue;
    auto values = floats_from_view(view);
    std::fill(values.begin() + D, values.begin() + 2 * D, 0.0f);
    view = view_from_floats(view.shape, values);
  }
}

void expect_equal(const TensorTable& a, const TensorTable& b) {
  EXPECT_EQ(a.names(), b.names());
  for (const auto& [name, view] : a.tensors) {
    if (!b.has(name)) continue;
    EXPECT_EQ(view.shape, b.at(name).shape) << name;
    EXPECT_EQ(floats_from_view(view), floats_from_view(b.at(name))) << name;
  }
}

struct RoundTrip {
  const char* dialect;
  const char* family;
  const char* source;
  Shapes shapes;
  bool no_key_bias = false;
};

TEST(Names, EveryDialectLeadsBackToTheSameTensors) {
  const RoundTrip trips[] = {
      {"torchvision", "vit", "torchvision", vit_shapes()},
      {"timm", "vit", "timm", vit_shapes()},
      {"huggingface", "vit", "huggingface", vit_shapes()},
      {"huggingface-v5", "vit", "huggingface", vit_shapes()},
      {"dino", "vit", "dino", encoder_shapes()},
      {"timm", "deit_distilled", "timm", distilled_shapes()},
      {"huggingface", "deit_distilled", "huggingface", distilled_shapes()},
      {"huggingface-v5", "deit_distilled", "huggingface", distilled_shapes()},
      {"timm", "dinov2", "timm", dinov2_shapes()},
      {"huggingface", "dinov2", "huggingface", dinov2_shapes()},
      {"dinov3", "dinov3", "dinov3", dinov3_shapes(false), true},
      {"dinov3", "dinov3", "dinov3", dinov3_shapes(true), true},
      {"timm", "dinov3", "timm", dinov3_shapes(false), true},
      {"timm-swiglu", "dinov3", "timm", dinov3_shapes(true), true},
      {"huggingface", "dinov3", "huggingface", dinov3_shapes(false), true},
      {"huggingface-swiglu", "dinov3", "huggingface", dinov3_shapes(true), true},
      {"torchvision", "convnext", "torchvision", convnext_shapes()},
      {"timm", "convnext", "timm", convnext_shapes()},
      {"meta", "convnext", "meta", convnext_shapes()},
      {"huggingface", "convnext", "huggingface", convnext_shapes()},
  };
  for (const RoundTrip& trip : trips) {
    SCOPED_TRACE(fmt::format("{} {}", trip.dialect, trip.family));
    CanonicalWeights ours{filled(trip.shapes), trip.family, trip.source};
    if (trip.no_key_bias) clear_key_biases(ours.table);
    const auto back = canonical_from_any(renamed_from_canonical(ours, trip.dialect));
    EXPECT_EQ(back.family, trip.family);
    EXPECT_EQ(back.source, trip.source);
    expect_equal(back.table, ours.table);
  }
}

TEST(Names, TheDialectsSpellTheNamesOfTheirFiles) {
  const CanonicalWeights vit{filled(vit_shapes()), "vit", "timm"};
  const auto torchvision = renamed_from_canonical(vit, "torchvision");
  EXPECT_EQ(torchvision.tensors.size(), 8u + 12 * 2);
  for (const char* name : {"class_token", "conv_proj.bias", "encoder.pos_embedding", "encoder.ln.weight",
                           "heads.head.bias", "encoder.layers.encoder_layer_1.self_attention.in_proj_weight",
                           "encoder.layers.encoder_layer_1.mlp.3.weight"})
    EXPECT_TRUE(torchvision.has(name)) << name;
  const auto hub = renamed_from_canonical(vit, "huggingface");
  EXPECT_EQ(hub.tensors.size(), 8u + 16 * 2);
  for (const char* name : {"vit.embeddings.patch_embeddings.projection.weight",
                           "vit.encoder.layer.1.attention.attention.key.bias",
                           "vit.encoder.layer.1.attention.output.dense.weight",
                           "vit.encoder.layer.1.output.dense.weight", "classifier.weight"})
    EXPECT_TRUE(hub.has(name)) << name;
  EXPECT_TRUE(renamed_from_canonical(vit, "huggingface-v5").has("vit.layers.1.attention.o_proj.weight"));
  const CanonicalWeights distilled{filled(distilled_shapes()), "deit_distilled", "timm"};
  EXPECT_TRUE(
      renamed_from_canonical(distilled, "huggingface").has("deit.encoder.layer.0.layernorm_before.weight"));

  const CanonicalWeights convnext{filled(convnext_shapes()), "convnext", "timm"};
  const auto features = renamed_from_canonical(convnext, "torchvision");
  EXPECT_EQ(features.at("features.5.1.layer_scale").shape, (std::vector<int64_t>{4, 1, 1}));
  EXPECT_EQ(features.at("features.6.1.weight").shape, (std::vector<int64_t>{5, 4, 2, 2}));
  EXPECT_THAT([&] { renamed_from_canonical(vit, "keras"); },
              ThrowsMessage<Error>(HasSubstr("unknown dialect of a vit 'keras'")));
}

TEST(Names, QueryKeyAndValueAreStackedInThisOrder) {
  auto hub = renamed_from_canonical({filled(vit_shapes()), "vit", "timm"}, "huggingface");
  hub.tensors["vit.encoder.layer.0.attention.attention.query.bias"] = view_from_floats({D}, {1, 2, 3, 4});
  hub.tensors["vit.encoder.layer.0.attention.attention.key.bias"] = view_from_floats({D}, {5, 6, 7, 8});
  hub.tensors["vit.encoder.layer.0.attention.attention.value.bias"] = view_from_floats({D}, {9, 10, 11, 12});
  EXPECT_THAT(floats_from_view(canonical_from_any(hub).table.at("blocks.0.attn.qkv.bias")),
              testing::ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  hub.tensors["vit.encoder.layer.0.attention.attention.key.bias"] =
      view_from_floats({D + 1}, {5, 6, 7, 8, 9});
  EXPECT_THAT([&] { canonical_from_any(hub); },
              ThrowsMessage<Error>(AllOf(HasSubstr("blocks.0.attn.qkv.bias"), HasSubstr("[5]"))));
  hub.tensors.erase("vit.encoder.layer.0.attention.attention.key.bias");
  hub.tensors.erase("vit.encoder.layer.0.attention.attention.key.weight");
  EXPECT_THAT([&] { canonical_from_any(hub); },
              ThrowsMessage<Error>(HasSubstr("needs query, key and value")));
}

TEST(Names, Dinov3BiasesAreMultipliedByTheirMask) {
  const CanonicalWeights ours{filled(dinov3_shapes(false)), "dinov3", "dinov3"};
  auto official = renamed_from_canonical(ours, "dinov3");
  official.tensors["rope_embed.periods"] = view_from_floats({2}, {1, 10});
  official.tensors["mask_token"] = view_from_floats({1, D}, {0, 0, 0, 0});
  official.tensors["local_cls_norm.weight"] = view_from_floats({D}, {0, 0, 0, 0});
  auto expected = ours.table;
  clear_key_biases(expected);
  const auto zeroed = floats_from_view(expected.at("blocks.1.attn.qkv.bias"));
  const auto plain = canonical_from_any(official);
  EXPECT_EQ(floats_from_view(plain.table.at("blocks.1.attn.qkv.bias")), zeroed);
  EXPECT_EQ(floats_from_view(plain.table.at("rope.periods")), (std::vector<float>{1, 10}));
  EXPECT_FALSE(plain.table.has("mask_token"));

  std::vector<float> never_initialized(3 * D, std::numeric_limits<float>::quiet_NaN());
  official.tensors["blocks.1.attn.qkv.bias_mask"] = view_from_floats({3 * D}, never_initialized);
  EXPECT_EQ(floats_from_view(canonical_from_any(official).table.at("blocks.1.attn.qkv.bias")), zeroed);
  official.tensors["blocks.1.attn.qkv.bias_mask"] = view_from_floats({1}, {1});
  EXPECT_THAT([&] { canonical_from_any(official); }, ThrowsMessage<Error>(HasSubstr("three equal parts")));
}

TEST(Names, AMissingQkvBiasIsZero) {
  auto timm = renamed_from_canonical({filled(dinov3_shapes(false)), "dinov3", "timm"}, "timm");
  for (const char* name : {"blocks.0.attn.q_bias", "blocks.0.attn.v_bias"})
    ASSERT_EQ(timm.tensors.erase(name), 1u);
  EXPECT_EQ(floats_from_view(canonical_from_any(timm).table.at("blocks.0.attn.qkv.bias")),
            std::vector<float>(3 * D, 0.0f));
}

TEST(Names, OldTorchvisionMlpNamesAreAccepted) {
  const CanonicalWeights ours{filled(vit_shapes()), "vit", "torchvision"};
  TensorTable old;
  for (const auto& [name, view] : renamed_from_canonical(ours, "torchvision").tensors) {
    std::string renamed = name;
    for (const auto& [from, to] :
         {std::pair{".mlp.0.", ".mlp.linear_1."}, std::pair{".mlp.3.", ".mlp.linear_2."}})
      if (const size_t at = renamed.find(from); at != renamed.npos)
        renamed.replace(at, std::string_view(from).size(), to);
    old.tensors[renamed] = view;
  }
  expect_equal(canonical_from_any(old).table, ours.table);
  old.tensors["encoder.layers.encoder_layer_0.mlp.0.weight"] =
      old.at("encoder.layers.encoder_layer_0.mlp.linear_1.weight");
  EXPECT_THAT([&] { canonical_from_any(old); }, ThrowsMessage<Error>(HasSubstr("under two names")));
}

TEST(Names, WrappersAreStripped) {
  const auto encoder = filled(encoder_shapes());
  TensorTable wrapped;
  for (const auto& [name, view] : encoder.tensors)
    wrapped.tensors["module.backbone._orig_mod." + name] = view;
  wrapped.tensors["module.head.mlp.0.weight"] = view_from_floats({1}, {0});
  wrapped.tensors["module.head.last_layer.weight_g"] = view_from_floats({1}, {0});
  const auto dino = canonical_from_any(wrapped);
  EXPECT_EQ(dino.source, "dino");
  expect_equal(dino.table, encoder);
  wrapped.tensors["cls_token"] = encoder.at("cls_token");
  EXPECT_THAT([&] { canonical_from_any(wrapped); },
              ThrowsMessage<Error>(HasSubstr("two tensors are called 'cls_token'")));

  TensorTable nested;  // recent transformers
  for (const auto& [name, view] :
       renamed_from_canonical({filled(dinov3_shapes(false)), "dinov3", "huggingface"}, "huggingface").tensors)
    nested.tensors[name.starts_with("layer.") ? "model." + name : name] = view;
  EXPECT_EQ(canonical_from_any(nested).family, "dinov3");

  TensorTable bare;  // a ViTModel: no prefix, a pooler
  for (const auto& [name, view] :
       renamed_from_canonical({encoder, "vit", "huggingface"}, "huggingface").tensors)
    bare.tensors[name.substr(4)] = view;
  bare.tensors["pooler.dense.weight"] = view_from_floats({1}, {0});
  expect_equal(canonical_from_any(bare).table, encoder);
}

TEST(Names, OfficialDinov2FilesMayChunkTheirBlocks) {
  const auto ours = filled(dinov2_shapes());
  TensorTable chunked;
  for (const auto& [name, view] : ours.tensors) {
    if (name == "reg_token")
      chunked.tensors["register_tokens"] = view;
    else
      chunked.tensors[name.starts_with("blocks.") ? "blocks.0." + name.substr(7) : name] = view;
  }
  chunked.tensors["mask_token"] = view_from_floats({1, D}, {0, 0, 0, 0});
  const auto weights = canonical_from_any(chunked);
  EXPECT_EQ(weights.source, "dinov2");
  EXPECT_EQ(weights.family, "dinov2");
  expect_equal(weights.table, ours);
}

TEST(Names, APositionTableWithoutClassRowGetsARowOfZeros) {
  auto table = filled(dinov2_shapes());
  table.tensors["pos_embed"] = view_from_floats({1, 9, D}, std::vector<float>(9 * D, 2.0f));
  const auto weights = canonical_from_any(table);
  std::vector<float> expected(10 * D, 2.0f);
  std::fill(expected.begin(), expected.begin() + D, 0.0f);
  EXPECT_EQ(weights.table.at("pos_embed").shape, (std::vector<int64_t>{1, 10, D}));
  EXPECT_EQ(floats_from_view(weights.table.at("pos_embed")), expected);
}

TEST(Names, PointwiseConvolutionsBecomeLinearLayers) {
  auto table = filled(convnext_shapes());
  table.tensors["stages.0.blocks.0.mlp.fc1.weight"].shape = {8, 2, 1, 1};
  EXPECT_EQ(canonical_from_any(table).table.at("stages.0.blocks.0.mlp.fc1.weight").shape,
            (std::vector<int64_t>{8, 2}));
}

TEST(Names, UnknownTensorsAreRefusedByName) {
  auto table = filled(vit_shapes());
  table.tensors["pre_logits.fc.weight"] = view_from_floats({1}, {0});
  table.tensors["blocks.0.attn.q_norm.weight"] = view_from_floats({1}, {0});
  EXPECT_THAT([&] { canonical_from_any(table); },
              ThrowsMessage<Error>(AllOf(HasSubstr("net.pth"), HasSubstr("a vit of timm"),
                                         HasSubstr("2 tensors"), HasSubstr("pre_logits.fc.weight"),
                                         HasSubstr("blocks.0.attn.q_norm.weight"))));
  EXPECT_THAT(
      [&] {
        canonical_from_any(filled({{"layer1.0.conv1.weight", {1}}}));
      },
      ThrowsMessage<Error>(HasSubstr("layer1.0.conv1.weight")));
  EXPECT_THROW(canonical_from_any({}), Error);
}

TEST(Names, WrittenCanonicalFilesKeepFamilyAndSource) {
  const std::string path = testing::TempDir() + "/canonical.safetensors";
  const auto weights =
      canonical_from_any(renamed_from_canonical({filled(vit_shapes()), "vit", "timm"}, "huggingface"));
  write_safetensors(path, weights.table);
  const auto back = canonical_from_any(read_safetensors(path));
  EXPECT_EQ(back.source, "huggingface");
  EXPECT_EQ(back.family, "vit");
  expect_equal(back.table, weights.table);
  auto forged = back.table;
  forged.metadata["aha.family"] = "lenet";
  EXPECT_THAT([&] { canonical_from_any(forged); }, ThrowsMessage<Error>(HasSubstr("unknown family 'lenet'")));
}

TEST(Names, PatternsBindNumbersAndRefuseOthers) {
  EXPECT_EQ(rewritten("a.12.weight", "a.{i}.*", "b.{i}.*"), "b.12.weight");
  EXPECT_EQ(rewritten("f.6.1", "f.{2s}.{j}", "{s}/{j}"), "3/1");
  EXPECT_EQ(rewritten("f.7", "f.{2s+1}", "{s}"), "3");
  EXPECT_EQ(rewritten("f.7", "f.{2s}", "{s}"), std::nullopt);
  EXPECT_EQ(rewritten("f.6", "f.{2s+1}", "{s}"), std::nullopt);
  EXPECT_EQ(rewritten("a.weight_g", "a.*", "b.*"), std::nullopt);
  EXPECT_EQ(rewritten("a.weight_g", "a.**", "b.**"), "b.weight_g");
  EXPECT_EQ(rewritten("a.01.bias", "a.{i}.*", "b.{i}.*"), std::nullopt);
  EXPECT_EQ(rewritten("a.99999999999.bias", "a.{i}.*", "b.{i}.*"), std::nullopt);
  EXPECT_EQ(rewritten("a.", "a.{i}", "{i}"), std::nullopt);
  EXPECT_EQ(rewritten("abc", "ab", "x"), std::nullopt);
  EXPECT_EQ(rewritten("ab", "abc", "x"), std::nullopt);
}

TEST(CheckKeys, SaysWhatIsMissingUnexpectedAndMisshapen) {
  const Shapes expected = vit_shapes();
  auto table = filled(expected);
  EXPECT_NO_THROW(check_keys(table, expected, "vit_test"));
  table.tensors.erase("norm.bias");
  table.tensors["extra"] = view_from_floats({1}, {0});
  table.tensors["head.weight"].shape = {4, 5};
  EXPECT_THAT([&] { check_keys(table, expected, "vit_test"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("net.pth"), HasSubstr("vit_test"),
                                         HasSubstr("1 missing: norm.bias"), HasSubstr("1 unexpected: extra"),
                                         HasSubstr("'head.weight' expected [5, 4], found [4, 5]"))));
}

}  // namespace
}  // namespace aha
