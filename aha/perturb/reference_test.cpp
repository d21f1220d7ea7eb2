#include "aha/perturb/reference.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/padding.h>

#include <numeric>

#include "aha/base/error.h"

namespace aha {
namespace {

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_GE(found.size(), expected.size());
  for (size_t n = 0; n < expected.size(); ++n) EXPECT_NEAR(found[n], expected[n], tolerance) << n;
}

// The published values have six digits.
TEST(Blur, KernelsHaveThePublishedWeights) {
  expect_near(reflected_impulse_weights(5, 2), {0.186251, 0.205248, 0.217003, 0.205248, 0.186251}, 5e-7);
  const auto rise = reflected_impulse_weights(11, 5);
  expect_near(rise, {0.087958, 0.088896, 0.090474, 0.092191, 0.093489, 0.093982}, 5e-7);
  EXPECT_NEAR(rise[5] * rise[5], 0.00883263, 5e-9);
  EXPECT_NEAR(rise[0] * rise[0], 0.00773664, 5e-9);
  const auto flat = reflected_impulse_weights(31, 31);
  EXPECT_NEAR(flat[0], 0.032259, 2e-6);
  EXPECT_NEAR(flat[15], 0.03225988, 5e-9);
  expect_near(gaussian_weights(11, 5), {0.066342, 0.079425, 0.091361, 0.100969, 0.107213, 0.109379}, 5e-7);
  EXPECT_NEAR(std::accumulate(rise.begin(), rise.end(), 0.0), 1, 1e-15);
}

TEST(Blur, EqualsAConvolutionWithReflectedBorders) {
  torch::manual_seed(1);
  const Tensor pixels = torch::rand({2, 3, 20, 30}, torch::kFloat64);
  ReferenceOptions options;
  options.sigma_px = 3;
  options.kernel_px = 13;
  const Tensor line = torch::tensor(gaussian_weights(13, 3), torch::kFloat64);
  const Tensor kernel = line.unsqueeze(1).mul(line).expand({3, 1, 13, 13}).contiguous();
  const Tensor padded = torch::nn::functional::pad(
      pixels, torch::nn::functional::PadFuncOptions({6, 6, 6, 6}).mode(torch::kReflect));
  const Tensor expected = torch::conv2d(padded, kernel, Tensor(), 1, at::IntArrayRef({0, 0}), 1, 3);
  EXPECT_LT((reference_image(pixels, ReferenceKind::kBlur, options) - expected).abs().max().item<double>(),
            1e-14);
}

TEST(Blur, RisePadsTheNormalizedImageWithZeros) {
  torch::manual_seed(2);
  const Tensor pixels = torch::rand({1, 3, 16, 16}, torch::kFloat64);
  ReferenceOptions options;
  options.blur = "rise";
  options.mean_color = {0.485, 0.456, 0.406};
  const Tensor mean = torch::tensor(options.mean_color, torch::kFloat64).view({1, 3, 1, 1});
  const Tensor std = torch::tensor({0.229, 0.224, 0.225}, torch::kFloat64).view({1, 3, 1, 1});
  const Tensor line = torch::tensor(reflected_impulse_weights(11, 5), torch::kFloat64);
  const Tensor kernel = line.unsqueeze(1).mul(line).expand({3, 1, 11, 11}).contiguous();
  const Tensor expected =
      torch::conv2d((pixels - mean) / std, kernel, Tensor(), 1, at::IntArrayRef({5, 5}), 1, 3) * std + mean;
  EXPECT_LT((reference_image(pixels, ReferenceKind::kBlur, options) - expected).abs().max().item<double>(),
            1e-14);
}

TEST(Blur, KeepsAConstantImageAndAllowsKernelsWiderThanIt) {
  const Tensor pixels = torch::full({1, 3, 5, 1}, 0.3, torch::kFloat64);
  ReferenceOptions options;
  options.sigma_px = 20;
  EXPECT_LT((reference_image(pixels, ReferenceKind::kBlur, options) - pixels).abs().max().item<double>(),
            1e-14);
}

TEST(Blur, FollowsTheSizeOfTheImage) {
  torch::manual_seed(3);
  const Tensor pixels = torch::rand({1, 3, 224, 224});
  ReferenceOptions stated;
  stated.sigma_px = 25;
  stated.kernel_px = 101;
  EXPECT_TRUE(torch::equal(reference_image(pixels, ReferenceKind::kBlur, {}),
                           reference_image(pixels, ReferenceKind::kBlur, stated)));
}

TEST(Reference, BlackAndMeanAreColors) {
  const Tensor pixels = torch::rand({2, 3, 4, 4});
  EXPECT_EQ(reference_image(pixels, ReferenceKind::kBlack, {}).abs().max().item<float>(), 0);
  const ReferenceOptions cifar = with_mean_color({}, {0.4914, 0.4822, 0.4465});
  const Tensor mean = reference_image(pixels, ReferenceKind::kMean, cifar);
  EXPECT_EQ(mean.sizes(), pixels.sizes());
  EXPECT_EQ(mean[1][2][3][3].item<float>(), 0.4465f);
}

// Zero in normalized space, whatever the mean color of the images is; rise pads with it too.
TEST(Reference, GrayIsTheMeanOfTheNormalization) {
  const Tensor pixels = torch::rand({1, 3, 16, 16}, torch::kFloat64);
  ReferenceOptions options = with_mean_color({}, {0.4914, 0.4822, 0.4465});
  EXPECT_TRUE(torch::equal(reference_image(pixels, ReferenceKind::kGray, options),
                           reference_image(pixels, ReferenceKind::kMean, options)))
      << "where nobody says otherwise";
  options.gray = {0.5, 0.5, 0.5};
  EXPECT_EQ(reference_image(pixels, reference_from_name("gray"), options).min().item<double>(), 0.5);
  options.blur = "rise";
  const Tensor gray = torch::full({1, 3, 16, 16}, 0.5, torch::kFloat64);
  EXPECT_LT((reference_image(gray, ReferenceKind::kBlur, options) - 0.5).abs().max().item<double>(), 1e-14)
      << "a gray image stays as it is up to its borders";
  EXPECT_EQ(json_from_references(options, {"gray"})["gray"], nlohmann::json({0.5, 0.5, 0.5}));
  EXPECT_EQ(all_references(pixels, options).size(), 3u) << "black, mean and blur where none is named";
}

TEST(Reference, TheAdaptiveBlurIsForEvaluations) {
  ReferenceOptions options;
  options.blur = "adaptive";
  EXPECT_THROW(reference_image(torch::rand({1, 3, 8, 8}), ReferenceKind::kBlur, options), Error);
}

TEST(Reference, NobodyGuessesTheMeanColor) {
  const Tensor pixels = torch::rand({1, 3, 4, 4});
  EXPECT_THROW(reference_image(pixels, ReferenceKind::kMean, {}), Error);
  ReferenceOptions chosen;
  chosen.mean_color = {0.1, 0.2, 0.3};
  EXPECT_EQ(with_mean_color(chosen, {0.4, 0.5, 0.6}).mean_color, chosen.mean_color)
      << "what the user says wins over the target";
}

TEST(Reference, OneForEachImageOrAllForAll) {
  const Tensor pixels = torch::rand({3, 3, 8, 8});
  const ReferenceOptions options = with_mean_color({}, {0.4914, 0.4822, 0.4465});
  const std::vector<std::string> kinds = {"mean", "blur", "black"};
  const Tensor each = reference_images(pixels, kinds, options);
  const auto all = all_references(pixels, options);  // black, mean, blur
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(torch::equal(each[0], all[1][0]));
  EXPECT_TRUE(torch::equal(each[1], all[2][1]));
  EXPECT_TRUE(torch::equal(each[2], all[0][2]));
  EXPECT_EQ(all_references(pixels, options, {"blur"}).size(), 1u);
  const auto json = json_from_references(options, kinds);
  EXPECT_EQ(json["mean"], (std::vector<double>{0.4914, 0.4822, 0.4465}));
  EXPECT_EQ(json["black"], (std::vector<int>{0, 0, 0}));
  EXPECT_TRUE(json["blur"].contains("rule"));
}

TEST(Reference, RefusesWhatItDoesNotKnow) {
  const Tensor pixels = torch::rand({1, 3, 8, 8});
  ReferenceOptions options;
  options.blur = "box";
  EXPECT_THROW(reference_image(pixels, ReferenceKind::kBlur, options), Error);
  options.blur = "gaussian";
  options.kernel_px = 4;
  EXPECT_THROW(reference_image(pixels, ReferenceKind::kBlur, options), Error);
  options.mean_color = {0.5};
  EXPECT_THROW(reference_image(pixels, ReferenceKind::kMean, options), Error);
  EXPECT_THROW(reference_from_name("noise"), Error);
  EXPECT_THROW(reference_image(pixels[0], ReferenceKind::kBlack, {}), Error);
}

}  // namespace
}  // namespace aha
