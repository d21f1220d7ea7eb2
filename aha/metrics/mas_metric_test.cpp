#include <gtest/gtest.h>

#include "aha/metrics/mas.h"
#include "aha/metrics/metric_records.h"
#include "aha/testing/metric_call.h"

namespace aha {
namespace {

// Answers by the number of pixels that still show the image (their first channel is 1).
class CountToy : public Classifier {
 public:
  explicit CountToy(std::vector<double> by_count) : by_count_(std::move(by_count)) {
    info_.classes = 2;
    info_.input.size = 4;
    info_.input.mean = {0.25, 0.5, 0.75};
  }
  Tensor logits(const Tensor& pixels, Taps* = nullptr) override {
    std::vector<double> p;
    for (int64_t b = 0; b < pixels.size(0); ++b)
      p.push_back(by_count_.at((pixels[b][0] == 1).sum().item<int64_t>()));
    const Tensor column = torch::tensor(p, torch::kFloat64);
    return torch::stack({column.log(), (1 - column).log()}, 1);
  }

 private:
  std::vector<double> by_count_;
};

// A map of 5 pixels with the sums of the worked example.
const Tensor kFive = torch::tensor({{8.f, 4.f, 2.f, 1.f, 1.f}}).view({1, 1, 5});

MetricValues five_pixels(const std::vector<double>& by_count,
                         const std::string& spec = "mas:step=1:transform=relu") {
  CountToy target(by_count);
  const Tensor pixels = torch::ones({1, 3, 1, 5});
  const auto images =
      checks::metric_images_of(target, pixels, torch::zeros({1}, torch::kInt64),
                               {{"black", torch::ones_like(pixels)}, {"blur", torch::zeros_like(pixels)}});
  return checks::measured(spec, target, images, kFive)[0];
}

TEST(MasMetric, ReproducesTheWorkedExamples) {
  // Inserted pixels 0..5; the blur is the reference, not the first of the list.
  const auto in = five_pixels({.05, .45, .40, .80, .85, .90}).values;
  EXPECT_NEAR(in.at("mas-insertion"), 0.588971, 1e-5);
  EXPECT_NEAR(in.at("rise-insertion"), 0.652941, 1e-5);
  // The same toy asked by deletion has its scores from behind: .90 with all pixels, .10 with none.
  const auto out = five_pixels({.10, .12, .20, .55, .50, .90}).values;
  EXPECT_NEAR(out.at("mas-deletion"), 0.3875, 1e-5);
  EXPECT_NEAR(out.at("rise-deletion"), 0.33, 1e-5);
}

TEST(MasMetric, AsksAboutTheColorThatNormalizationMakesZero) {
  CountToy target({.1, .2, .3, .4, .5, .6});
  const Tensor gray = normal_zero(target, torch::ones({3, 2, 2}));
  EXPECT_TRUE(gray.equal(torch::tensor({.25f, .5f, .75f}).view({3, 1, 1}).expand({3, 2, 2})));
}

TEST(MasMetric, EqualsTheDirectCallThatMethodsUse) {
  checks::MeanToy target(8);
  const Tensor pixels = torch::rand({1, 3, 8, 8}), map = torch::rand({1, 8, 8}),
               blur = torch::rand({1, 3, 8, 8});
  const auto images =
      checks::metric_images_of(target, pixels, torch::zeros({1}, torch::kInt64), {{"blur", blur}});
  const auto found = checks::measured("mas", target, images, map)[0].values;
  const auto p = [&](const Tensor& image) {
    return probabilities(target, image.unsqueeze(0), Context())[0][0].item<double>();
  };
  for (const MasTest test : {MasTest::kInsertion, MasTest::kDeletion}) {
    const bool up = test == MasTest::kInsertion;
    const Tensor reference = up ? blur[0] : normal_zero(target, pixels[0]);
    const MasImage image{pixels[0], reference, 0, p(pixels[0]), p(reference)};
    const auto curve = mas_curve(test, mas_input(target, test, image, scaled_to_unit(map[0]), Context()));
    EXPECT_NEAR(found.at(up ? "mas-insertion" : "mas-deletion"), curve.mas, 1e-6);
    EXPECT_NEAR(found.at(up ? "rise-insertion" : "rise-deletion"), curve.rise, 1e-6);
  }
}

TEST(MasMetric, AMapWithoutPositiveValuesIsMissingUnderRelu) {
  checks::MeanToy target(4);
  const auto images =
      checks::metric_images_of(target, torch::rand({1, 3, 4, 4}), torch::zeros({1}, torch::kInt64));
  const Tensor map = -torch::rand({1, 4, 4});
  EXPECT_EQ(checks::measured("mas:transform=relu", target, images, map)[0].missing,
            "the map has no value above 0");
  EXPECT_EQ(checks::measured("mas", target, images, map)[0].values.size(), 4u);
}

}  // namespace
}  // namespace aha
