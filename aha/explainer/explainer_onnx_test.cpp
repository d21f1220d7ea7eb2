#include "aha/explainer/explainer_onnx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/explainer/explainer_shape.h"
#include "aha/networks/convnext.h"
#include "aha/networks/resnet.h"
#include "aha/networks/vit.h"
#include "aha/nn/module_state.h"
#include "aha/onnx/program.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

constexpr int kExportedSide = 32;

// Weights and statistics of a size at which every part of the network counts.
template <class Holder>
Holder with_state_to_export(Holder network) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(11);
  for (auto& item : network->named_parameters()) {
    Tensor& values = item.value();
    if (values.dim() > 1)
      values.normal_(0, 1.5 / std::sqrt(static_cast<double>(values[0].numel())));
    else
      values.uniform_(-0.2, 0.2).add_(item.key().ends_with("bias") ? 0.0 : 1.0);
  }
  for (auto& item : network->named_buffers()) {
    if (item.key().ends_with("running_mean")) item.value().uniform_(-0.3, 0.3);
    if (item.key().ends_with("running_var")) item.value().uniform_(0.5, 1.5);
  }
  freeze(*network);
  return network;
}

template <class Holder>
std::unique_ptr<Classifier> classifier_to_export(Holder network,
                                                 std::optional<Precision> engine = std::nullopt) {
  ClassifierInfo info;
  info.name = info.architecture = network->family();
  info.classes = network->classes();
  info.input.size = info.input.resize = kExportedSide;
  info.input.std = {0.25, 0.23, 0.27};
  return std::make_unique<NetworkClassifier>(with_state_to_export(std::move(network)), std::move(info),
                                             engine);
}

VitConfig vit_to_export() {
  VitConfig c;
  c.image_size = kExportedSide;
  c.patch = 8;
  c.width = 32;
  c.depth = 4;
  c.heads = 2;
  c.mlp_hidden = 48;
  c.classes = 5;
  return c;
}

std::unique_ptr<Classifier> vit_to_export_with(const std::function<void(VitConfig&)>& change = {}) {
  VitConfig c = vit_to_export();
  if (change) change(c);
  return classifier_to_export(Vit(c));
}

std::unique_ptr<Classifier> convnext_to_export() {
  ConvNextConfig c;
  c.image_size = kExportedSide;
  c.stem_stride = 2;
  c.depths = {1, 2};
  c.widths = {16, 24};
  c.classes = 5;
  return classifier_to_export(ConvNext(c));
}

std::unique_ptr<Classifier> resnet_to_export(const std::function<void(ResNetConfig&)>& change = {}) {
  ResNetConfig c;
  c.image_size = kExportedSide;
  c.depths = {1, 2};
  c.widths = {16, 20};
  c.classes = 5;
  if (change) change(c);
  return classifier_to_export(ResNet(c));
}

ExplainerShape exported_shape(std::vector<std::string> levels = {}, const std::string& prior = "none") {
  ExplainerShape s;
  s.levels = std::move(levels);
  s.prior = prior;
  s.channels = 8;
  s.top = 8;
  s.head = 8;
  return s;
}

std::unique_ptr<Explainer> explainer_to_export(Classifier& target, const ExplainerShape& shape) {
  auto explainer = make_explainer(target, shape, Context());
  explainer->decoder() = with_state_to_export(explainer->decoder());
  return explainer;
}

struct ExportedAnswers {
  Tensor map, logits, predicted;
};

// In the file: what our own reader computes.
ExportedAnswers exported_answers(Explainer& explainer, Classifier* target, const Tensor& pixels,
                                 const Tensor& classes, const OnnxBuilderOptions& options = {}) {
  OnnxBuilder g(options);
  write_onnx(g, explainer, target, kExportedSide);
  const std::string path = checks::fresh_folder("explainer_onnx") + "/explainer.onnx";
  g.save(path);
  const torch::NoGradGuard no_grad;
  const auto found = OnnxProgram(read_onnx_graph(path)).run_all({pixels, classes});
  return {found[0], target ? found[1] : Tensor(), target ? found[2] : Tensor()};
}

double exported_distance(const Tensor& found, const Tensor& expected) {
  return ((found - expected).abs().max() / expected.abs().max()).item<double>();
}

void expect_exported_maps(Explainer& explainer, Classifier& target, const OnnxBuilderOptions& options = {}) {
  torch::manual_seed(4);
  const Tensor pixels = torch::rand({3, 3, kExportedSide, kExportedSide}),
               classes = torch::tensor({0L, 3L, 4L});
  const torch::NoGradGuard no_grad;
  const auto found = exported_answers(explainer, &target, pixels, classes, options);
  const Tensor expected = explainer.map(pixels, classes), logits = target.logits(pixels);
  ASSERT_GT(expected.std().item<double>(), 0);
  EXPECT_LE(exported_distance(found.map, expected), 1e-4);
  EXPECT_LE(exported_distance(found.logits, logits), 1e-4);
  EXPECT_TRUE(found.predicted.equal(logits.argmax(1)));
}

TEST(ExportedExplainer, GivesTheMapsOfATransformersOwnTokens) {
  const auto target = vit_to_export_with();
  expect_exported_maps(*explainer_to_export(*target, exported_shape()), *target);
}

TEST(ExportedExplainer, GivesTheMapsOfEveryOpset) {
  const auto target = vit_to_export_with();
  const auto explainer = explainer_to_export(*target, exported_shape());
  for (int opset = 13; opset <= 17; ++opset) expect_exported_maps(*explainer, *target, {.opset = opset});
  EXPECT_THAT(checks::message_of([] { OnnxBuilder g({.opset = 12}); }), ::testing::HasSubstr("13..17"));
}

TEST(ExportedExplainer, JoinsTokensAndAttention) {
  const auto target = vit_to_export_with();
  auto shape = exported_shape({"block.1+block.0.attention+block.1.attention", "block.3+embed",
                               "block.2.norm1", "patch_embed+block.3.attention_out+block.0.value_out"});
  shape.class_dot = true;
  shape.padding = "replicate";
  shape.output = "sigmoid";
  expect_exported_maps(*explainer_to_export(*target, shape), *target);
}

TEST(ExportedExplainer, HasDistillationRegistersAndLayerScale) {
  const auto target = vit_to_export_with([](VitConfig& c) {
    c.distilled = c.layer_scale = true;
    c.registers = 3;
  });
  expect_exported_maps(*explainer_to_export(*target, exported_shape()), *target);
}

TEST(ExportedExplainer, HasRotaryPositionsAndSwiGlu) {
  const auto target = vit_to_export_with([](VitConfig& c) {
    c.rope = c.swiglu = true;
    c.registers = 1;
  });
  expect_exported_maps(*explainer_to_export(*target, exported_shape()), *target);
}

TEST(ExportedExplainer, ResamplesAPositionTableOfAnotherSize) {
  const auto target = vit_to_export_with([](VitConfig& c) { c.image_size = 64; });
  expect_exported_maps(*explainer_to_export(*target, exported_shape()), *target);
}

TEST(ExportedExplainer, BeginsWithTheForwardOnlyPriors) {
  const auto convnext = convnext_to_export();
  const auto resnet = resnet_to_export();
  for (const bool parts : {false, true}) {
    const auto begun_with = [&](const char* prior) {
      ExplainerShape shape = exported_shape({}, prior);
      shape.prior_parts = parts;
      return shape;
    };
    for (const bool distilled : {false, true}) {
      const auto target = vit_to_export_with([&](VitConfig& c) { c.distilled = c.layer_scale = distilled; });
      expect_exported_maps(*explainer_to_export(*target, begun_with("logit-attribution")), *target);
    }
    expect_exported_maps(*explainer_to_export(*convnext, begun_with("cam")), *convnext);
    expect_exported_maps(*explainer_to_export(*resnet, begun_with("cam")), *resnet);
  }
}

TEST(ExportedExplainer, GivesTheMapsOfConvNets) {
  const auto convnext = convnext_to_export();
  expect_exported_maps(*explainer_to_export(*convnext, exported_shape()), *convnext);
  for (const bool bottleneck : {false, true}) {
    const auto resnet = resnet_to_export([&](ResNetConfig& c) {
      c.bottleneck = bottleneck;
      c.conv_bias = c.stride_first = bottleneck;
      c.stem_kernel = bottleneck ? 3 : 7;
    });
    expect_exported_maps(
        *explainer_to_export(*resnet, exported_shape({"stem", "stage.0.block.0", "stage.1"})), *resnet);
  }
}

TEST(ExportedExplainer, GivesTheMapsOfTheEngine) {
  VitConfig c = vit_to_export();
  c.width = 64;
  c.mlp_hidden = 128;
  const auto target = classifier_to_export(Vit(c), Precision::kF32);
  ASSERT_TRUE(target->gives_relevance({"block.1"}));
  expect_exported_maps(*explainer_to_export(*target, exported_shape({}, "logit-attribution")), *target);
}

TEST(ExportedExplainer, HasAnEncoderOfItsOwnAndNoTarget) {
  const auto target = resnet_to_export();
  const std::shared_ptr<Classifier> network = vit_to_export_with([](VitConfig& c) { c.classes = 0; });
  EncoderInfo info;
  info.name = info.architecture = "vit";
  info.normalized = true;
  DecoderOptions o;
  o.widths = {32, 32};
  o.scales = {2, -2};
  o.classes = 5;
  o.embedding = 12;
  o.channels = o.top = o.head = 8;
  Explainer explainer(encoder_from_classifier(network, {"block.1", "block.3"}, info), o, target.get());
  explainer.decoder() = with_state_to_export(explainer.decoder());
  expect_exported_maps(explainer, *target);
  torch::manual_seed(4);
  const Tensor pixels = torch::rand({2, 3, kExportedSide, kExportedSide}), classes = torch::tensor({2L, 1L});
  const torch::NoGradGuard no_grad;
  const auto found = exported_answers(explainer, nullptr, pixels, classes);
  EXPECT_LE(exported_distance(found.map, explainer.map(pixels, classes)), 1e-4);
}

TEST(ExportedExplainer, ExplainsThePredictedClassWhereNoneIsGiven) {
  const auto target = convnext_to_export();
  const auto explainer = explainer_to_export(*target, exported_shape());
  torch::manual_seed(4);
  const Tensor pixels = torch::rand({3, 3, kExportedSide, kExportedSide});
  const auto found = exported_answers(*explainer, target.get(), pixels, torch::tensor({-1L, 2L, -1L}));
  const torch::NoGradGuard no_grad;
  const Tensor predicted = target->logits(pixels).argmax(1);
  const Tensor classes = torch::stack({predicted[0], torch::tensor(2L), predicted[2]});
  EXPECT_LE(exported_distance(found.map, explainer->map(pixels, classes)), 1e-4);
}

// Weights of 16 bits have 11 significant bits.
TEST(ExportedExplainer, InHalfTheSizeStaysNear) {
  const auto target = vit_to_export_with();
  const auto explainer = explainer_to_export(*target, exported_shape());
  torch::manual_seed(4);
  const Tensor pixels = torch::rand({2, 3, kExportedSide, kExportedSide}), classes = torch::tensor({0L, 3L});
  OnnxBuilder full({}), half({.half = true});
  write_onnx(full, *explainer, target.get(), kExportedSide);
  write_onnx(half, *explainer, target.get(), kExportedSide);
  EXPECT_LT(half.bytes().size(), 0.65 * static_cast<double>(full.bytes().size()));
  const torch::NoGradGuard no_grad;
  const auto found = exported_answers(*explainer, target.get(), pixels, classes, {.half = true});
  const double off = exported_distance(found.map, explainer->map(pixels, classes));
  EXPECT_LE(off, 2e-2);
  EXPECT_GT(off, 1e-6);
}

TEST(ExportedExplainer, WhatNeedsABackwardPassIsRefused) {
  const auto target = vit_to_export_with();
  const auto explainer = explainer_to_export(*target, exported_shape({}, "chefer"));
  const auto message = checks::message_of([&] {
    OnnxBuilder g({});
    write_onnx(g, *explainer, target.get(), kExportedSide);
  });
  EXPECT_THAT(message, ::testing::HasSubstr("none, logit-attribution, cam"));
}

}  // namespace
}  // namespace aha
