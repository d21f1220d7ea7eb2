#include "aha/networks/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <cstdlib>
#include <filesystem>

#include "aha/base/files.h"
#include "aha/base/imagenet_classes.h"
#include "aha/networks/network_classifier.h"
#include "aha/networks/preprocess.h"
#include "aha/networks/torchscript.h"
#include "aha/networks/weight_summary.h"
#include "aha/nn/module_state.h"
#include "aha/testing/checks.h"
#include "aha/testing/npz.h"
#include "aha/testing/renamed_weights.h"
#include "aha/testing/tiny_networks.h"
#include "aha/weights/safetensors.h"

namespace aha {
namespace {

namespace fs = std::filesystem;
using checks::fresh_folder;
using checks::message_of;
using nlohmann::json;
using testing::HasSubstr;
using testing_nets::convnext_of_two_blocks;
using testing_nets::golden_input;
using testing_nets::vit_of_8_pixels;

ModelCard tiny_card() {
  ModelCard card;
  card.input.size = card.input.resize = 8;
  card.input.rule = ResizeRule::kStretch;
  card.input.crop = false;
  card.classes = {"red", "green", "blue"};
  card.provenance = {{"data", "none"}, {"seed", 1}, {"figures", {{"accuracy", 0.5}}}};
  return card;
}

// ---- classes and images ----

TEST(ImageNetClasses, AreInTheOrderOfTheirWordNetIds) {
  const auto classes = imagenet_classes();
  ASSERT_EQ(classes.size(), 1000u);
  for (size_t i = 1; i < classes.size(); ++i) EXPECT_LT(std::string(classes[i - 1].wnid), classes[i].wnid);
  EXPECT_STREQ(classes[0].name, "tench");
  EXPECT_STREQ(classes[235].wnid, "n02106662");
  EXPECT_STREQ(classes[837].name, "sunglasses");
  EXPECT_STREQ(classes[999].wnid, "n15075141");
}

TEST(Input, OfAImageHasTheSizeOfTheNetwork) {
  Image image(50, 40);
  image.rgb.assign(image.rgb.size(), 128);
  InputSpec spec;
  spec.size = 24;
  spec.resize = 32;
  const auto pixels = input_from_image(image, spec);
  EXPECT_EQ(pixels.sizes(), (std::vector<int64_t>{3, 24, 24}));
  EXPECT_FLOAT_EQ(pixels.max().item<float>(), 128 / 255.f);
  spec.crop = false;
  EXPECT_THAT(message_of([&] { input_from_image(image, spec); }),
              HasSubstr("expected 24 x 24 pixels after preprocessing, found 40 x 32"));
  spec.rule = ResizeRule::kStretch;
  spec.resize = 24;
  EXPECT_EQ(input_from_image(image, spec).sizes(), (std::vector<int64_t>{3, 24, 24}));
}

TEST(Input, IsNormalizedByMeanAndStd) {
  InputSpec spec;
  spec.mean = {0.5, 0.25, 0};
  spec.std = {0.5, 0.25, 1};
  const auto x = normalized(torch::ones({1, 3, 2, 2}), spec);
  EXPECT_TRUE(x[0].select(1, 0).select(1, 0).equal(torch::tensor({1.f, 3.f, 1.f})));
}

TEST(Input, OverridesKeepTheProportionOfResizeAndCrop) {
  LoadOptions overrides;
  overrides.input_size = 448;
  overrides.mean = {0.1, 0.2, 0.3};
  const auto spec = with_overrides(InputSpec{}, overrides);
  EXPECT_EQ(spec.size, 448);
  EXPECT_EQ(spec.resize, 512);
  EXPECT_EQ(spec.mean[2], 0.3);
  overrides.std = {1, 0, 1};
  EXPECT_THAT(message_of([&] { with_overrides(InputSpec{}, overrides); }), HasSubstr("--std"));
}

// ---- preprocessing files ----

TEST(Preprocessing, ReadsOurOwnForm) {
  const auto p = preprocessing_from_json(
      json::parse(R"({"input_size":[3,224,224],"resize":{"mode":"short_side","size":248},"crop":"center",
    "interpolation":"bicubic","antialias":true,"mean":[127.5,127.5,127.5],"std":[127.5,127.5,127.5],"range":[0,255],"channel_order":"RGB",
    "output":"logits","num_classes":1000,"labels":"imagenet1k"})"),
      "p.json");
  EXPECT_EQ(text_from_input(p.input), "short side 248 bicubic, crop 224, mean 0.5 0.5 0.5, std 0.5 0.5 0.5");
  EXPECT_EQ(p.class_names.size(), 1000u);
  EXPECT_EQ(p.output, "logits");
}

TEST(Preprocessing, ReadsTimmsConfig) {
  const auto p = preprocessing_from_json(
      json::parse(
          R"({"architecture":"vit_tiny_patch16_224","num_classes":1000,"pretrained_cfg":{"input_size":[3,224,224],
    "crop_pct":0.9,"interpolation":"bicubic","mean":[0.5,0.5,0.5],"std":[0.5,0.5,0.5],"crop_mode":"center"}})"),
      "config.json");
  EXPECT_EQ(text_from_input(p.input), "short side 248 bicubic, crop 224, mean 0.5 0.5 0.5, std 0.5 0.5 0.5");
}

TEST(Preprocessing, ReadsHuggingFacesProcessors) {
  const auto text = [](const char* source) {
    return text_from_input(preprocessing_from_json(json::parse(source), "preprocessor_config.json").input);
  };
  EXPECT_EQ(
      text(
          R"({"do_resize":true,"size":{"height":224,"width":224},"resample":2,"image_mean":[0.5,0.5,0.5],"image_std":[0.5,0.5,0.5]})"),
      "both sides 224 bilinear, size 224, mean 0.5 0.5 0.5, std 0.5 0.5 0.5");
  EXPECT_EQ(
      text(
          R"({"do_center_crop":true,"crop_size":224,"size":256,"resample":3,"image_mean":[0.485,0.456,0.406],"image_std":[0.229,0.224,0.225]})"),
      "short side 256 bicubic, crop 224, mean 0.485 0.456 0.406, std 0.229 0.224 0.225");
  EXPECT_EQ(
      text(
          R"({"size":{"shortest_edge":224},"crop_pct":0.875,"resample":3,"image_mean":[0.5,0.5,0.5],"image_std":[0.5,0.5,0.5]})"),
      "short side 256 bicubic, crop 224, mean 0.5 0.5 0.5, std 0.5 0.5 0.5");
  EXPECT_EQ(
      text(
          R"({"size":{"shortest_edge":384},"crop_pct":0.875,"resample":3,"image_mean":[0.5,0.5,0.5],"image_std":[0.5,0.5,0.5]})"),
      "both sides 384 bicubic, size 384, mean 0.5 0.5 0.5, std 0.5 0.5 0.5");
}

TEST(Preprocessing, RefusesWhatItDoesNotUnderstand) {
  const auto refusal = [](const char* source) {
    return message_of([&] { preprocessing_from_json(json::parse(source), "p.json"); });
  };
  EXPECT_THAT(refusal(R"({"input_size":[3,224,224],"men":[0,0,0]})"), HasSubstr("men"));
  EXPECT_THAT(refusal(R"({"input_size":[3,224,200]})"), HasSubstr("[3, S, S]"));
  EXPECT_THAT(refusal(R"({"input_size":[3,-4,-4]})"), HasSubstr("1..16384"));
  EXPECT_THAT(refusal(R"({"input_size":[3,8,8],"std":[0,1,1]})"), HasSubstr("above 0"));
  EXPECT_THAT(refusal(R"({"input_size":[3,8,8],"mean":"x"})"), HasSubstr("three numbers"));
  EXPECT_THAT(refusal(R"({"input_size":[3,8,8],"channel_order":"GBR"})"), HasSubstr("RGB, BGR"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(message_of([] { json_from_text("{\"a\":", "p.json"); }), HasSubstr("p.json: not valid JSON"));
}

// ---- cards and model directories ----

TEST(Card, GoesToJsonAndBack) {
  auto card = tiny_card();
  card.kind = "explainer";
  card.architecture = "dpt";
  card.sha256 = "00";
  card.encoder = ModelCard::EncoderPart{"target", "11", {"block.0", "block.1"}, true};
  card.target = ModelCard::TargetPart{"tiny", "vit", "11", {}};
  card.temperature = 0.5;
  card.training = {{"steps", 3}};
  const json written = json_from_card(card);
  EXPECT_EQ(json(json_from_card(card_from_json(written, "card"))), written);
}

TEST(Card, SaysWhichChannelsAndRangeTheNetworkGets) {
  auto j = nlohmann::json::parse(
      R"({"size":8,"resize":{"rule":"none"},"crop":false,"filter":"bilinear","mean":[30,20,10],"std":[1,2,4],)"
      R"("channel_order":"BGR","range":[0,255]})");
  const InputSpec input = input_from_card_json(j, "test");
  EXPECT_EQ(input.order, ChannelOrder::kBgr);
  // Red is 1 in the first channel of the pixels and comes last to the network, as (255 - 30) / 1.
  const Tensor red = torch::tensor({1.0f, 0.0f, 0.0f}).view({1, 3, 1, 1});
  EXPECT_TRUE(torch::allclose(network_input(red, input).flatten(), torch::tensor({-2.5f, -10.0f, 225.0f})));
  EXPECT_TRUE(torch::allclose(normalized(red, input).flatten(), torch::tensor({225.0f, -10.0f, -2.5f})));
  const InputSpec again = input_from_card_json(card_json_from_input(input), "test");
  EXPECT_EQ(again.order, ChannelOrder::kBgr);
  EXPECT_EQ(again.mean, input.mean);
  EXPECT_THAT(text_from_input(input), HasSubstr("BGR"));
  j["channel_order"] = "GBR";
  EXPECT_THAT(message_of([&] { input_from_card_json(j, "test"); }), HasSubstr("RGB, BGR"));
}

TEST(Card, RefusesAKeyItDoesNotKnow) {
  auto card = tiny_card();
  card.kind = "classifier";
  card.architecture = "vit";
  json written = json_from_card(card);
  const auto refusal = [&](const json& j) { return message_of([&] { card_from_json(j, "model.json"); }); };
  auto typo = written;
  typo["clases"] = 3;
  EXPECT_THAT(refusal(typo), HasSubstr("did you mean 'classes'"));
  typo = written;
  typo["input"]["men"] = 3;
  EXPECT_THAT(refusal(typo), HasSubstr("men"));
  typo = written;
  typo["provenance"]["dat"] = 3;
  EXPECT_THAT(refusal(typo), HasSubstr("did you mean 'data'"));
  typo = written;
  typo["kind"] = "classifer";
  EXPECT_THAT(refusal(typo), HasSubstr("did you mean 'classifier'"));
  typo = written;
  typo["temperature"] = 1;
  EXPECT_THAT(refusal(typo), HasSubstr("temperature"));
  typo = written;
  typo.erase("input");
  EXPECT_THAT(refusal(typo), HasSubstr("expected the key \"input\""));
}

TEST(Card, SaysTheMeanColorOfTheTrainingImages) {
  auto card = tiny_card();
  card.mean_color = {0.25, 0.5, 0.75};
  const auto folder = fresh_folder("models_mean_color");
  auto network = vit_of_8_pixels();
  save_classifier(folder, *network, card);
  EXPECT_EQ(load_classifier(folder, {}, Context())->info().mean_color, card.mean_color);
  card.kind = "classifier";
  card.architecture = "vit";
  json written = json_from_card(card);
  written.erase("mean_color");  // cards written before it existed
  EXPECT_EQ(card_from_json(written, "card").mean_color, kImageNetMeanColor);
  written["mean_color"] = {0.5, 127, 0.5};
  EXPECT_THAT(message_of([&] { card_from_json(written, "model.json"); }),
              HasSubstr("mean_color: expected numbers in 0..1, found 127"));
}

TEST(Card, ItsRecipeTellsWhetherTheTrainingImagesHadRemovedRegions) {
  auto card = tiny_card();
  EXPECT_FALSE(masked_training(card));
  for (const auto& [recipe, masked] : std::vector<std::pair<std::string, bool>>{
           {R"({"mask-share": 0.1})", true}, {R"({"mask-share": 0})", false}, {"by hand", false}}) {
    card.provenance["recipe"] = recipe;
    EXPECT_EQ(masked_training(card), masked) << recipe;
  }
  card.provenance["recipe"] = R"({"mask-share": 0.1})";
  const auto folder = fresh_folder("models_masked");
  save_classifier(folder, *vit_of_8_pixels(), card);
  EXPECT_TRUE(load_classifier(folder, {}, Context())->info().masked_training);
}

TEST(ModelDirectory, GivesBackTheClassifierThatWasSaved) {
  const auto folder = fresh_folder("models_vit");
  auto network = vit_of_8_pixels();
  save_classifier(folder, *network, tiny_card());
  const auto loaded = load_classifier(folder, {}, Context());
  EXPECT_EQ(loaded->info().classes, 3);
  EXPECT_EQ(loaded->info().class_names[1], "green");
  EXPECT_EQ(loaded->info().sha256, sha256_of_file(folder + "/model.safetensors"));
  const auto pixels = torch::rand({2, 3, 8, 8});
  EXPECT_TRUE(loaded->logits(pixels).equal(network->forward(normalized(pixels, loaded->info().input))));
  EXPECT_EQ(loaded->tap_names(), network->tap_names());
  EXPECT_EQ(loaded->head_weights().sizes(), (std::vector<int64_t>{3, 8}));

  const auto other = fresh_folder("models_convnext");
  auto convnext = convnext_of_two_blocks();
  auto card = tiny_card();
  card.input.size = card.input.resize = 16;
  save_classifier(other, *convnext, card);
  EXPECT_EQ(load_classifier(other, {}, Context())->logits(torch::rand({1, 3, 16, 16})).size(1), 3);
}

TEST(ModelDirectory, IsRefusedWhereItsWeightsAreNotTheCards) {
  const auto folder = fresh_folder("models_changed");
  auto network = vit_of_8_pixels();
  save_classifier(folder, *network, tiny_card());
  auto bytes = read_file(folder + "/model.safetensors");
  bytes.back() ^= 1;
  write_file_atomically(folder + "/model.safetensors", bytes);
  EXPECT_THAT(message_of([&] { load_classifier(folder, {}, Context()); }), HasSubstr("sha256"));
}

TEST(ModelDirectory, IsRefusedWhereAHyperParameterIsMisspelt) {
  const auto folder = fresh_folder("models_misspelt");
  auto network = vit_of_8_pixels();
  save_classifier(folder, *network, tiny_card());
  auto card = read_json(folder + "/model.json");
  card["network"]["dept"] = 2;
  write_file_atomically(folder + "/model.json", card.dump());
  EXPECT_THAT(message_of([&] { load_classifier(folder, {}, Context()); }), HasSubstr("dept"));
}

// ---- catalog ----

TEST(Catalog, FindsBundledModelsByName) {
  const auto folder = fresh_folder("models_bundled");
  auto network = vit_of_8_pixels();
  save_classifier(folder + "/tiny", *network, tiny_card());
  ::setenv("AHA_MODELS", folder.c_str(), 1);
  ASSERT_EQ(bundled_models().size(), 1u);
  EXPECT_EQ(bundled_models()[0].name, "tiny");
  EXPECT_EQ(load_classifier("tiny", {}, Context())->info().name, "tiny");
  EXPECT_THAT(message_of([] { load_classifier("tny", {}, Context()); }), HasSubstr("did you mean 'tiny'"));
  ::unsetenv("AHA_MODELS");
}

TEST(Catalog, SaysWhatIsWrongWithASpec) {
  const auto refusal = [](const std::string& spec) {
    return message_of([&] { load_classifier(spec, {}, Context()); });
  };
  EXPECT_THAT(refusal("vit_b_61:x.pth"), HasSubstr("did you mean 'vit_b_16'"));
  EXPECT_THAT(refusal("vit_b_16:no_such_file.pth"), HasSubstr("no_such_file.pth"));
  EXPECT_THAT(refusal("script:no_such_file.pt"), HasSubstr("no_such_file.pt"));
  const auto folder = fresh_folder("models_specs");
  EXPECT_THAT(refusal(folder), HasSubstr("no model.json"));
  auto network = vit_of_8_pixels();
  write_safetensors(folder + "/w.safetensors", table_from_state(*network));
  EXPECT_THAT(refusal(folder + "/w.safetensors"), HasSubstr("vit_b_16:"));
  EXPECT_THAT(refusal("vit_b_16:" + folder + "/w.safetensors"), HasSubstr("width 8 instead of 768"));
  EXPECT_THAT(refusal("convnext_tiny:" + folder + "/w.safetensors"), HasSubstr("vision transformer"));
}

TEST(Catalog, KnowsTheRecipeOfEachSource) {
  const auto recipe = [](const char* name, const char* source, int size = 224) {
    return text_from_input(default_input(architecture_named(name), source, size));
  };
  const std::string in = ", mean 0.485 0.456 0.406, std 0.229 0.224 0.225",
                    half = ", mean 0.5 0.5 0.5, std 0.5 0.5 0.5";
  EXPECT_EQ(recipe("vit_b_16", "torchvision"), "short side 256 bilinear, crop 224" + in);
  EXPECT_EQ(recipe("vit_l_16", "torchvision"), "short side 242 bilinear, crop 224" + in);
  EXPECT_EQ(recipe("vit_b_16", "torchvision", 384), "short side 384 bicubic, crop 384" + in);
  EXPECT_EQ(recipe("vit_ti_16", "timm"), "short side 248 bicubic, crop 224" + half);
  EXPECT_EQ(recipe("vit_b_16", "timm", 384), "short side 384 bicubic, crop 384" + half);
  EXPECT_EQ(recipe("vit_b_32", "huggingface", 384), "both sides 384 bilinear, size 384" + half);
  EXPECT_EQ(recipe("deit_b_16", "timm"), "short side 248 bicubic, crop 224" + in);
  EXPECT_EQ(recipe("convnext_tiny", "torchvision"), "short side 236 bilinear, crop 224" + in);
  EXPECT_EQ(recipe("convnext_small", "torchvision"), "short side 230 bilinear, crop 224" + in);
  EXPECT_EQ(recipe("convnext_base", "torchvision"), "short side 232 bilinear, crop 224" + in);
  EXPECT_EQ(recipe("convnext_small", "timm"), "short side 256 bicubic, crop 224" + in);
  EXPECT_EQ(recipe("dinov2_vitl14", "dinov2"), "short side 256 bicubic, crop 224" + in);
  EXPECT_EQ(recipe("dinov3_vitl16", "dinov3", 256), "both sides 256 bilinear, size 256" + in);
}

TEST(Catalog, SummarizesAWeightFile) {
  const auto folder = fresh_folder("models_summary");
  VitConfig config = config_from_json<VitConfig>(architecture_named("vit_mini_8").config, "test");
  Vit network(config);
  const CanonicalWeights weights{table_from_state(*network), "vit", "timm"};
  write_safetensors(folder + "/w.safetensors", renamed_from_canonical(weights, "huggingface"));
  const auto summary = summarize_weights(folder + "/w.safetensors");
  EXPECT_EQ(summary.architecture, "vit_mini_8") << summary.remark;
  EXPECT_EQ(summary.source, "huggingface");
  EXPECT_EQ(summary.parameters, parameter_count(*network));
  EXPECT_EQ(summary.classes, 10);
  EXPECT_EQ(summary.input->size, 32);
  EXPECT_EQ(summary.dtypes.at("F32"), static_cast<int64_t>(summary.tensors.size()));
  TensorTable other;
  other.tensors["a.b"] = view_from_floats({2}, {1, 2});
  write_safetensors(folder + "/o.safetensors", other);
  EXPECT_FALSE(summarize_weights(folder + "/o.safetensors").remark.empty());
  EXPECT_EQ(summarize_weights(folder + "/o.safetensors").values, 2);
}

// ---- TorchScript ----

std::string script_file(const std::string& folder, const std::string& name, const std::string& code,
                        const std::string& preprocess = "") {
  torch::jit::Module module("net");
  module.define(code);
  const auto path = folder + "/" + name;
  torch::jit::ExtraFilesMap extra;
  if (!preprocess.empty()) extra["preprocess.json"] = preprocess;
  module.save(path, extra);
  return path;
}

LoadOptions at_size(int size) {
  LoadOptions options;
  options.input_size = size;
  return options;
}

TEST(TorchScript, GivesLogitsAndGradients) {
  const auto folder = fresh_folder("models_script");
  const auto path = script_file(
      folder, "m.pt", "def forward(self, x):\n  return x.mean([2, 3]) * 3\n",
      R"({"input_size":[3,8,8],"mean":[0.5,0.5,0.5],"std":[0.5,0.5,0.5],"labels":["r","g","b"]})");
  const auto classifier = load_classifier("script:" + path, {}, Context());
  EXPECT_EQ(classifier->info().classes, 3);
  EXPECT_EQ(classifier->info().class_names[2], "b");
  const auto pixels = torch::rand({2, 3, 8, 8}).requires_grad_();
  const auto logits = classifier->logits(pixels);
  EXPECT_LT((logits - (pixels.mean({2, 3}) - 0.5) / 0.5 * 3).abs().max().item<double>(), 1e-5);
  EXPECT_NEAR(torch::autograd::grad({logits.sum()}, {pixels})[0][0][0][0][0].item<double>(), 6.0 / 64, 1e-6);
  EXPECT_TRUE(classifier->tap_names().empty());
  EXPECT_THAT(message_of([&] {
                classifier->logits(torch::rand({1, 3, 9, 9}));
              }),
              HasSubstr("expected shape [any, 3, 8, 8]"));
}

TEST(TorchScript, TakesTuplesDictsAndProbabilities) {
  const auto folder = fresh_folder("models_script_outputs");
  const auto pixels = torch::rand({2, 3, 8, 8});
  const auto logits = [&](const char* name, const std::string& code) {
    return load_script_classifier(script_file(folder, name, code), at_size(8), Context())->logits(pixels);
  };
  const auto plain = logits("plain.pt", "def forward(self, x):\n  return x.mean([2, 3])\n");
  EXPECT_TRUE(logits("tuple.pt", "def forward(self, x):\n  return (x.mean([2, 3]), x)\n").equal(plain));
  EXPECT_TRUE(logits("dict.pt", "def forward(self, x):\n  return {'hidden': x, 'logits': x.mean([2, 3])}\n")
                  .equal(plain));
  const auto probabilities =
      logits("probs.pt", "def forward(self, x):\n  return x.mean([2, 3]).softmax(1)\n").softmax(1);
  EXPECT_LT((probabilities - plain.softmax(1)).abs().max().item<double>(), 1e-6);
  EXPECT_THAT(message_of([&] { logits("none.pt", "def forward(self, x):\n  return {'hidden': x}\n"); }),
              HasSubstr("found hidden"));
  EXPECT_THAT(message_of([&] { logits("shape.pt", "def forward(self, x):\n  return x\n"); }),
              HasSubstr("[1, classes]"));
}

TEST(TorchScript, RunsAFixedBatchImageByImage) {
  const auto folder = fresh_folder("models_script_batch");
  const auto path =
      script_file(folder, "m.pt", "def forward(self, x):\n  return x.reshape([1, 3, 64]).mean(2)\n");
  const auto pixels = torch::rand({3, 3, 8, 8});
  const auto classifier = load_script_classifier(path, at_size(8), Context());
  EXPECT_LT((classifier->logits(pixels) - normalized(pixels, classifier->info().input).mean({2, 3}))
                .abs()
                .max()
                .item<double>(),
            1e-5);
}

TEST(TorchScript, RefusesRandomNetworksAndOtherFiles) {
  const auto folder = fresh_folder("models_script_random");
  const auto path =
      script_file(folder, "m.pt", "def forward(self, x):\n  return torch.dropout(x.flatten(1), 0.5, True)\n");
  EXPECT_THAT(message_of([&] { load_script_classifier(path, at_size(8), Context()); }),
              HasSubstr("training mode"));
  write_file_atomically(folder + "/text.pt", "not a zip");
  EXPECT_THAT(message_of([&] { load_script_classifier(folder + "/text.pt", {}, Context()); }),
              HasSubstr("not a TorchScript file"));
}

TEST(TorchScript, KnowsTheAttentionOperatorOfLaterVersions) {
  const auto folder = fresh_folder("models_script_attention");
  script_file(folder, "first.pt", "def forward(self, x):\n  return x.mean([2, 3])\n");
  load_script_classifier(folder + "/first.pt", at_size(8), Context());  // defines what is missing
  const auto path = script_file(folder, "m.pt",
                                "def forward(self, x):\n  q = x.flatten(2)\n  a = "
                                "torch.scaled_dot_product_attention(q, q, q)\n  return a.mean(2)\n");
  const auto classifier = load_script_classifier(path, at_size(8), Context());
  const auto pixels = torch::rand({2, 3, 8, 8}).requires_grad_();
  const auto q = normalized(pixels, classifier->info().input).flatten(2);
  const auto expected = torch::matmul(torch::softmax(torch::matmul(q, q.transpose(1, 2)) / 8, -1), q).mean(2);
  const auto logits = classifier->logits(pixels);
  EXPECT_LT((logits - expected).abs().max().item<double>(), 1e-5);
  EXPECT_GT(torch::autograd::grad({logits.sum()}, {pixels})[0].abs().max().item<double>(), 0);
}

// ---- real weights, where they are at hand ----

TEST(RealWeights, VitTinyGivesThePublishedLogits) {
  const auto folder = checks::shared_file("weights");
  if (!fs::is_regular_file(folder + "/vit_tiny_reference.npz"))
    GTEST_SKIP() << "no real weights at " << folder;
  const auto file = folder + "/vit_tiny_patch16_224_in1k.safetensors";
  const auto classifier = load_classifier("vit_ti_16:" + file, {}, Context());
  EXPECT_EQ(text_from_input(classifier->info().input),
            "short side 248 bicubic, crop 224, mean 0.5 0.5 0.5, std 0.5 0.5 0.5");
  EXPECT_EQ(summarize_weights(file).architecture, "vit_ti_16");
  const auto arrays = checks::read_npz(folder + "/vit_tiny_reference.npz");
  Tensor input, expected;
  for (const auto& [name, array] : arrays) {
    const auto tensor = torch::tensor(array.values).view(array.shape);
    if (tensor.dim() == 4) input = tensor;
    if (tensor.dim() == 2 && tensor.size(1) == 1000) expected = tensor;
  }
  ASSERT_TRUE(input.defined() && expected.defined());
  const torch::NoGradGuard no_grad;
  const auto logits = dynamic_cast<NetworkClassifier&>(*classifier).shared_network()->forward(input);
  EXPECT_LT((logits - expected).abs().max().item<double>(), 1e-3);
  EXPECT_TRUE(logits.argmax(1).equal(torch::tensor({115, 207, 620, 817})));
}

TEST(RealWeights, SqueezeNetRunsAsTorchScript) {
  const auto path = checks::shared_file("weights") + "/squeezenet1_1_in1k.torchscript.pt";
  if (!fs::is_regular_file(path)) GTEST_SKIP() << "no real weights at " << path;
  const auto classifier = load_classifier("script:" + path, {}, Context());
  EXPECT_EQ(classifier->info().classes, 1000);
  EXPECT_EQ(classifier->info().class_names[0], "tench");
}

}  // namespace
}  // namespace aha
