// The CAM family on ConvNets whose every figure is known, beside obvious versions of themselves.
#include <gtest/gtest.h>

#include "aha/methods/cam_maps.h"
#include "aha/methods/catalog.h"
#include "aha/methods/patch_maps.h"
#include "aha/networks/resnet.h"
#include "aha/testing/close.h"
#include "aha/testing/tiny_targets.h"

namespace aha {
namespace {

// Features: the normalized image's channels mixed, means of 2 x 2 pixels; logits: a head on their mean.
class PooledTarget : public Classifier {
 public:
  PooledTarget(int channels, bool relu) : relu_(relu) {
    info_ = checks::plain_info("pooled", 8);
    info_.classes = 3;
    checks::fill_with_wave(mix = torch::empty({channels, 3, 1, 1}), 2, 1);
    checks::fill_with_wave(head = torch::empty({3, channels}), 5, 1);
  }
  std::vector<std::string> tap_names() const override { return {"features"}; }
  Tensor features_of(const Tensor& pixels) const {
    const auto means = torch::avg_pool2d(torch::conv2d(normalized(pixels, info_.input), mix), 2);
    return relu_ ? means.relu() : means;
  }
  Tensor logits(const Tensor& pixels, Taps* taps) override {
    const auto features = features_of(pixels);
    if (taps && taps->wants("features")) taps->offer("features", features);
    return logits_from_features(features);
  }
  Tensor logits_from_features(const Tensor& features) override {
    return features.mean({2, 3}).matmul(head.t());
  }
  Tensor mix, head;

 private:
  bool relu_;
};

struct CamAsked {
  Tensor pixels = torch::empty({2, 3, 8, 8}), classes = torch::tensor({0, 2}, torch::kInt64);
  CamAsked() {
    checks::fill_with_wave(pixels, 7, 0.5);
    pixels += 0.5;
  }
  Tensor maps(const std::string& spec, Classifier& target) const {
    return make_method(spec, {target})
        ->attribute(pixels, classes, std::vector<uint64_t>{1, 2}, Context())
        .maps;
  }
};

constexpr double kRelative = 1e-5, kAbsolute = 1e-6;

TEST(FeatureCams, WeighChannelsAsTheHeadDoes) {
  PooledTarget target(4, false);
  const CamAsked asked;
  const auto a = target.features_of(asked.pixels);                           // (2, 4, 4, 4)
  const auto q = target.head.index_select(0, asked.classes) / 16;            // 4 x 4 places
  const auto expect = [&](const std::string& spec, const Tensor& weights) {  // (2, 4)
    const auto raw = weighted_channels(a, weights);                          // (2, 4, 4)
    const auto distance = (asked.maps(spec, target) - cam_finished(raw, 8, 8)).abs();
    for (int64_t b = 0; b < 2; ++b) {
      SCOPED_TRACE(fmt::format("{}, image {}", spec, b));
      // Sums of four terms, divided by the largest of them; as far off in the expected map.
      const double norms = a[b].norm(2, 0).max().item<double>() * weights[b].norm().item<double>(),
                   bound = 4 * checks::sum_bound(4, norms) / raw[b].max().item<double>();
      EXPECT_LE(distance[b].max().item<double>(), bound);
      EXPECT_GT(bound, 0);
      EXPECT_LT(bound, 1e-4);
    }
  };
  expect("gradcam", q);
  expect("hirescam", q);
  expect("layercam", q.relu());
  // Without a channel the logit loses that channel's share: w_c = h_c mean(a_c) / y.
  const auto shares = q * a.sum({2, 3});  // (2, 4)
  expect("ablationcam:ablation=zero", shares / shares.sum(1, true));
}

// What cam shows before it is enlarged, (1, h, w).
Tensor cam_values(Classifier& target, const Tensor& features, int64_t wanted) {
  Tensor weights = torch::zeros({target.info().classes});
  weights[wanted] = 1;
  const auto places = static_cast<double>(features.size(2) * features.size(3));
  return weighted_channels(features, target.head_direction(features.mean({2, 3}), weights) / places);
}

TEST(Cam, SumsToTheLogitWithoutItsBias) {
  ResNetConfig config;
  config.image_size = 32, config.depths = {1, 1}, config.widths = {8, 16}, config.classes = 5;
  ResNet resnet(config);
  int m = 0;
  for (const auto& parameter : resnet->named_parameters())
    checks::fill_with_wave(parameter.value(), ++m, 0.5);
  checks::freeze(*resnet);
  NetworkClassifier target(resnet, checks::plain_info("resnet", 32));
  Tensor pixels = torch::empty({1, 3, 32, 32});
  checks::fill_with_wave(pixels, 7, 0.5);
  pixels += 0.5;
  Taps taps({"features"});
  const Tensor logits = target.logits(pixels, &taps)[0];
  for (int64_t t = 0; t < 5; ++t) {
    const Tensor values = cam_values(target, taps.at("features"), t);  // (1, h, w)
    const double expected = (logits[t] - resnet->fc->bias[t]).item<double>();
    EXPECT_NEAR(values.sum().item<double>(), expected, 1e-5 * (1 + std::abs(expected))) << t;
    const auto map = make_method("cam", {target})
                         ->attribute(pixels, torch::tensor({t}), std::vector<uint64_t>{1}, Context())
                         .maps;
    EXPECT_TRUE(torch::allclose(map, upsampled(values, 32, 32), 1e-5, 1e-6));
  }
}

TEST(Cam, HoldsTheNormOfAConvNextFixed) {
  const auto network = checks::tiny_convnext();
  checks::fill_with_wave(network->head->norm->weight, 3, 1);
  checks::fill_with_wave(network->head->norm->bias, 4, 1);
  ConvNextClassifier target(network, checks::plain_info("convnext", 16));
  Tensor pixels = torch::empty({1, 3, 16, 16});
  checks::fill_with_wave(pixels, 7, 0.5);
  Taps taps({"features"});
  const Tensor logits = target.logits(pixels + 0.5, &taps)[0];
  const auto& fc = *network->head->fc;
  for (int64_t t = 0; t < 5; ++t) {
    const Tensor values = cam_values(target, taps.at("features"), t);
    const double expected =
        (logits[t] - fc.bias[t] - fc.weight[t].dot(network->head->norm->bias)).item<double>();
    EXPECT_NEAR(values.sum().item<double>(), expected, 1e-5 * (1 + std::abs(expected))) << t;
  }
}

TEST(AblationCam, BehindAReluTheLibraryPutsZero) {
  PooledTarget target(5, true);
  const CamAsked asked;
  ASSERT_EQ(target.features_of(asked.pixels)[0].min().item<float>(), 0);
  ASSERT_EQ(target.features_of(asked.pixels)[1].min().item<float>(), 0);
  EXPECT_TRUE(
      torch::equal(asked.maps("ablationcam", target), asked.maps("ablationcam:ablation=zero", target)));
  PooledTarget with_negative(5, false);
  EXPECT_FALSE(torch::allclose(asked.maps("ablationcam", with_negative),
                               asked.maps("ablationcam:ablation=zero", with_negative)));
}

TEST(ScoreCam, OfOneChannelIsThatChannel) {
  PooledTarget target(1, false);
  const CamAsked asked;
  const auto channel = target.features_of(asked.pixels).squeeze(1);
  EXPECT_TRUE(torch::equal(asked.maps("scorecam", target), cam_finished(channel, 8, 8)));
}

TEST(ScoreCam, AgreesWithTheObviousVersion) {
  PooledTarget target(40, false);  // more than a chunk
  const CamAsked asked;
  const auto features = target.features_of(asked.pixels);
  const auto x = normalized(asked.pixels, target.info().input);
  std::vector<Tensor> raw;
  for (int64_t b = 0; b < 2; ++b) {
    std::vector<Tensor> scores;
    for (int64_t c = 0; c < 40; ++c) {
      const auto mask = scorecam_masks(features[b].narrow(0, c, 1), 8, 8);  // (1, 8, 8)
      const auto seen = torch::avg_pool2d(torch::conv2d((x[b] * mask).unsqueeze(0), target.mix), 2);
      scores.push_back(target.logits_from_features(seen)[0][asked.classes[b].item<int64_t>()]);
    }
    raw.push_back(
        weighted_channels(features.narrow(0, b, 1), torch::softmax(torch::stack(scores), 0).unsqueeze(0)));
  }
  EXPECT_TRUE(
      torch::allclose(asked.maps("scorecam", target), cam_finished(torch::cat(raw), 8, 8), 1e-4, kAbsolute));
}

TEST(HiResCam, IsGradCamWhereTheFeaturesArePooled) {
  ConvNextClassifier target(checks::tiny_convnext(), checks::plain_info("convnext", 16));
  CamAsked asked;
  asked.pixels = torch::empty({2, 3, 16, 16});
  checks::fill_with_wave(asked.pixels, 7, 0.5);
  const auto maps = asked.maps("gradcam", target);
  EXPECT_TRUE(torch::allclose(asked.maps("hirescam", target), maps, kRelative, kAbsolute));
  EXPECT_GT(maps.max().item<float>(), 0.5f);
  EXPECT_FALSE(torch::allclose(asked.maps("gradcam++", target), maps, 1e-2));
}

TEST(FeatureCams, AreTheSameOnTheEngine) {
  const auto network = checks::tiny_convnext();
  ConvNextClassifier plain(network, checks::plain_info("convnext", 16)),
      fast(network, checks::plain_info("convnext", 16), Precision::kF32);
  CamAsked asked;
  asked.pixels = torch::empty({2, 3, 16, 16});
  checks::fill_with_wave(asked.pixels, 7, 0.5);
  asked.pixels += 0.5;
  for (const std::string spec : {"gradcam", "gradcam++", "hirescam", "layercam", "scorecam", "ablationcam"})
    EXPECT_TRUE(torch::allclose(asked.maps(spec, fast), asked.maps(spec, plain), 0, 1e-4)) << spec;
}

TEST(Random, HasOneScoreForEachCell) {
  PooledTarget target(1, false);
  const CamAsked asked;
  const auto map = asked.maps("random:cell=4", target)[0];
  for (int64_t y = 0; y < 8; ++y)
    for (int64_t x = 0; x < 8; ++x)
      EXPECT_EQ(map[y][x].item<float>(), map[y / 4 * 4][x / 4 * 4].item<float>());
  EXPECT_EQ(std::get<0>(at::_unique(map)).numel(), 4);
  EXPECT_EQ(std::get<0>(at::_unique(asked.maps("random", target)[0])).numel(), 64);
}

TEST(BlurredRandom, IsRandomUnderAGaussian) {
  PooledTarget target(1, false);
  const CamAsked asked;
  EXPECT_TRUE(
      torch::equal(asked.maps("blurred-random:sigma=0.25", target), asked.maps("random:blur=2", target)));
}

}  // namespace
}  // namespace aha
