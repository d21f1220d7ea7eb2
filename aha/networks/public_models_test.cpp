// A small ResNet with Keras' names, axes and habits, written as a TensorFlow.js model: brought by `aha get`
// it must answer as an obvious version of itself does.
#include "aha/networks/public_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/files.h"
#include "aha/image/read.h"
#include "aha/networks/catalog.h"
#include "aha/networks/keras_resnet.h"
#include "aha/testing/checks.h"
#include "aha/testing/environment.h"
#include "aha/testing/gradient.h"

namespace aha {
namespace {

using checks::fresh_folder;
using checks::message_of;
using testing::HasSubstr;

using KerasWeights = std::map<std::string, Tensor>;

// Stages of two blocks and one block; kernels (H, W, I, O).
KerasWeights keras_weights() {
  KerasWeights w;
  torch::manual_seed(3);
  const auto conv = [&](const std::string& name, int size, int in, int out) {
    w[name + "/kernel"] = torch::randn({size, size, in, out}) / std::sqrt(size * size * in);
    w[name + "/bias"] = 0.3 * torch::randn({out});
  };
  const auto norm = [&](const std::string& name, int width) {
    for (const char* part : {"/gamma", "/moving_variance"}) w[name + part] = 0.01 + torch::rand({width});
    for (const char* part : {"/beta", "/moving_mean"}) w[name + part] = 0.3 * torch::randn({width});
  };
  conv("conv1", 7, 3, 8);
  norm("bn_conv1", 8);
  int in = 8;
  for (const std::string block : {"2a", "2b", "3a"}) {
    const int width = block[0] == '2' ? 8 : 16;
    const std::string r = "res" + block + "_branch", b = "bn" + block + "_branch";
    if (block[1] == 'a') conv(r + "1", 1, in, 4 * width), norm(b + "1", 4 * width);
    conv(r + "2a", 1, in, width), norm(b + "2a", width);
    conv(r + "2b", 3, width, width), norm(b + "2b", width);
    conv(r + "2c", 1, width, 4 * width), norm(b + "2c", 4 * width);
    in = 4 * width;
  }
  w["fc1000/kernel"] = torch::randn({64, 7});
  w["fc1000/bias"] = torch::randn({7});
  return w;
}

// bgr (B, 3, H, W) in 0..255 minus the mean color
Tensor keras_logits(KerasWeights w, Tensor x) {
  const auto conv = [&](const Tensor& in, const std::string& n, int stride, int padding) {
    return torch::conv2d(in, w.at(n + "/kernel").permute({3, 2, 0, 1}), w.at(n + "/bias"), stride, padding);
  };
  const auto norm = [&](const Tensor& in, const std::string& n) {
    return torch::batch_norm(in, w.at(n + "/gamma"), w.at(n + "/beta"), w.at(n + "/moving_mean"),
                             w.at(n + "/moving_variance"), false, 0, 1e-3, false);
  };
  x = torch::max_pool2d(norm(conv(x, "conv1", 2, 3), "bn_conv1").relu(), 3, 2, 1);
  for (const std::string block : {"2a", "2b", "3a"}) {
    const int stride = block == "3a" ? 2 : 1;
    const std::string r = "res" + block + "_branch", b = "bn" + block + "_branch";
    Tensor y = norm(conv(x, r + "2a", stride, 0), b + "2a").relu();
    y = norm(conv(y, r + "2b", 1, 1), b + "2b").relu();
    y = norm(conv(y, r + "2c", 1, 0), b + "2c");
    x = (y + (block[1] == 'a' ? norm(conv(x, r + "1", stride, 0), b + "1") : x)).relu();
  }
  return x.mean({2, 3}).matmul(w.at("fc1000/kernel")) + w.at("fc1000/bias");
}

std::string tfjs_package(const KerasWeights& weights) {
  const std::string folder = fresh_folder("tfjs_package"), inner = folder + "/package/ResNet50";
  make_directories(inner);
  nlohmann::json list = nlohmann::json::array();
  std::string bytes;
  for (const auto& [name, tensor] : weights) {
    list.push_back({{"name", name}, {"shape", tensor.sizes().vec()}, {"dtype", "float32"}});
    bytes.append(static_cast<const char*>(tensor.contiguous().data_ptr()), tensor.nbytes());
  }
  const nlohmann::json model = {{"weightsManifest", {{{"paths", {"one.bin"}}, {"weights", list}}}}};
  write_file_atomically(inner + "/one.bin", bytes);
  write_file_atomically(inner + "/model.json", model.dump());
  return folder;
}

TEST(PublicModels, ResNet50AnswersAsKerasDoes) {
  const checks::Variable cache("AHA_CACHE", fresh_folder("public_models"));
  EXPECT_THAT(message_of([] { load_network("resnet50-imagenet"); }), HasSubstr("aha get resnet50-imagenet"));
  const auto weights = keras_weights();
  const auto fetched = get_public_model("resnet50-imagenet", tfjs_package(weights), Context());
  EXPECT_FALSE(fetched.was_there);
  EXPECT_THAT(fetched.card.provenance["license"].get<std::string>(), HasSubstr("MIT"));
  const Tensor pixels = torch::rand({2, 3, 224, 224});
  const Tensor mean = torch::tensor({103.939, 116.779, 123.68}, torch::kFloat32).view({1, 3, 1, 1});
  const Tensor expected = keras_logits(weights, pixels.flip(1) * 255 - mean);
  const auto target = load_classifier("resnet50-imagenet", {}, Context());
  EXPECT_LT(checks::relative(target->logits(pixels), expected), 1e-5);
  EXPECT_GT(checks::relative(target->logits(pixels.flip(1)), expected), 1e-3) << "the order matters";
  Taps taps({"features"});
  EXPECT_LT(checks::relative(target->logits(pixels, &taps), expected), 1e-5) << "without the engine";
}

TEST(PublicModels, ASecondCallDoesNothingAndABrokenModelIsMadeAgain) {
  const checks::Variable cache("AHA_CACHE", fresh_folder("public_models_twice"));
  const std::string package = tfjs_package(keras_weights());
  const auto first = get_public_model("resnet50-imagenet", package, Context());
  const auto again = get_public_model("resnet50-imagenet", "", Context());
  EXPECT_TRUE(again.was_there);
  EXPECT_EQ(again.card.sha256, first.card.sha256);
  write_file_atomically(first.directory + "/model.safetensors", "broken");
  const auto mended = get_public_model("resnet50-imagenet", package, Context());
  EXPECT_FALSE(mended.was_there);
  EXPECT_EQ(mended.card.sha256, first.card.sha256);
  EXPECT_EQ(sha256_of_file(mended.directory + "/model.safetensors"), first.card.sha256);
}

TEST(PublicModels, WhatIsNoSuchModelLeavesNothingBehind) {
  const std::string folder = fresh_folder("public_models_wrong");
  const checks::Variable cache("AHA_CACHE", folder);
  auto weights = keras_weights();
  weights["res2a_branch2d/kernel"] = torch::zeros({1, 1, 2, 2});
  const auto get = [](const std::string& from) {
    return message_of([&] { get_public_model("resnet50-imagenet", from, Context()); });
  };
  EXPECT_THAT(get(tfjs_package(weights)), HasSubstr("res2a_branch2d/kernel"));
  EXPECT_THAT(get(fresh_folder("public_models_empty")), HasSubstr("model.json"));
  EXPECT_THAT(get("/nowhere"), HasSubstr("/nowhere"));
  EXPECT_THAT(message_of([] { get_public_model("resnet51", "", Context()); }),
              HasSubstr("resnet50-imagenet"));
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/models"));
}

// Logits of the package's tensors in PyTorch, from Pillow's pixels.
TEST(RealWeights, ResNet50OfTheRegistryGivesPyTorchsLogits) {
  const std::string photos = checks::shared_file("imagenet/");
  if (!model_directory("resnet50-imagenet") || !std::filesystem::exists(photos + "check.csv"))
    GTEST_SKIP() << "`aha get resnet50-imagenet` was not called, or no photos at " << photos;
  const auto target = load_classifier("resnet50-imagenet", {}, Context());
  struct Known {
    const char* file;
    std::vector<int64_t> classes;
    std::vector<float> logits;
  };
  for (const Known& known :
       {Known{"check/0000_00006697.jpg", {0, 389, 395, 390}, {22.51416f, 14.98995f, 10.163655f, 9.616261f}},
        Known{"check/0200_00002318.jpg",
              {155, 204, 200, 154},
              {19.145227f, 14.570666f, 12.983014f, 12.738908f}},
        Known{"check/0400_00004101.jpg",
              {400, 667, 887, 834},
              {22.757572f, 18.922213f, 12.551626f, 11.096359f}}}) {
    const Tensor pixels = input_from_image(read_image(photos + known.file), target->info().input);
    const auto [logits, classes] = target->logits(pixels.unsqueeze(0))[0].topk(4);
    EXPECT_TRUE(classes.equal(torch::tensor(known.classes))) << known.file;
    EXPECT_LT((logits - torch::tensor(known.logits)).abs().max().item<double>(), 1e-4 * known.logits[0])
        << known.file;
  }
}

}  // namespace
}  // namespace aha
