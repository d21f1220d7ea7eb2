// Metrics with worked examples: adp and pic, sparseness, saco, idsds, segmentation, localization.
#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/metrics/metric_records.h"
#include "aha/testing/metric_call.h"

namespace aha {
namespace {

const Tensor kFirstClass = torch::zeros({1}, torch::kInt64);

TEST(AverageDrop, ReproducesTheWorkedExample) {
  // Images of one value Y, maps that show one half, references such that the blend has the mean O.
  const std::vector<double> Y = {.9, .5, .8, .2}, O = {.6, .7, .8, .05};
  checks::MeanToy target(4);
  Tensor pixels = torch::empty({4, 3, 4, 4}), reference = torch::empty({4, 3, 4, 4});
  for (int i = 0; i < 4; ++i) pixels[i].fill_(Y[i]), reference[i].fill_(2 * O[i] - Y[i]);
  reference[2].copy_(pixels[2]);
  Tensor map = torch::zeros({4, 4, 4});
  map.slice(1, 0, 2).fill_(3);
  const auto images =
      checks::metric_images_of(target, pixels, torch::zeros({4}, torch::kInt64), {{"mean", reference}});
  double adp = 0, pic = 0;
  for (const auto& one : checks::measured("adp", target, images, map)) {
    adp += one.values.at("adp@mean") / 4;
    pic += one.values.at("pic@mean") / 4;
  }
  EXPECT_NEAR(adp, 27.083333, 1e-4);  // pixels are float32
  EXPECT_EQ(pic, 25);
}

TEST(Sparseness, IsTheGiniIndex) {
  EXPECT_NEAR(gini_index({1, 1, 1, 1}), 0, 1e-12);
  EXPECT_NEAR(gini_index({0, 0, 0, 5}), 0.75, 1e-12);  // 1 - 1/n
  EXPECT_NEAR(gini_index({3, 1, 2, 4}), 0.25, 1e-12);  // (-3 - 2 + 3 + 12) / (4 * 10)
  EXPECT_EQ(gini_index({0, 0}), 0);
  checks::MeanToy target(2);
  const auto images = checks::metric_images_of(target, torch::rand({1, 3, 2, 2}), kFirstClass);
  const auto found =
      checks::measured("sparseness", target, images, torch::tensor({-3.f, 1.f, 2.f, -4.f}).view({1, 2, 2}));
  EXPECT_NEAR(found[0].values.at("sparseness"), 0.25, 1e-7);
}

TEST(Saco, WeighsEveryPairByTheDifferenceOfItsSums) {
  // Pairs: 0-1 agrees (2), 0-2 agrees (3), 1-2 does not (1).
  EXPECT_NEAR(*salience_coefficient({5, 3, 2}, {.4, .1, .2}), (2 + 3 - 1) / 6.0, 1e-12);
  EXPECT_NEAR(*salience_coefficient({5, 3, 2}, {.3, .2, .1}), 1, 1e-12);
  EXPECT_NEAR(*salience_coefficient({5, 3, 2}, {.1, .2, .3}), -1, 1e-12);
  EXPECT_NEAR(*salience_coefficient({5, 3}, {.1, .1}), 1, 1e-12);  // equal drops do not contradict
  EXPECT_FALSE(salience_coefficient({2, 2}, {.1, .3}));
}

TEST(Saco, RemovesOneGroupAfterTheOtherWithTheImagesMean) {
  // Four pixels in two groups. The first channel is 1, .6, .2, 0 (mean .45), and its mean is the score:
  // without the two upper pixels it falls by (1.6 - .9) / 4, without the lower ones it rises by (.9 - .2)
  // / 4.
  checks::MeanToy target(2);
  const Tensor pixels =
      torch::tensor({1.f, .6f, .2f, 0.f}).view({1, 1, 2, 2}).expand({1, 3, 2, 2}).contiguous();
  const auto images = checks::metric_images_of(target, pixels, kFirstClass);
  const auto value = [&](std::vector<float> map) {
    return checks::measured("saco:groups=2", target, images, torch::tensor(map).view({1, 2, 2}))[0].values.at(
        "saco");
  };
  EXPECT_EQ(value({4, 3, 2, 1}), 1);
  EXPECT_EQ(value({1, 2, 3, 4}), -1);
  EXPECT_EQ(checks::measured("saco:groups=3", target, images, torch::rand({1, 2, 2})).size(), 1u);
}

TEST(SingleDeletion, IsTheRankCorrelationOverTheCells) {
  // 4 x 4 pixels, 2 x 2 cells; the logit log(m / (1 - m)) falls with the mean m: the cells cost as much as
  // they are brighter than the gray of the normalization.
  checks::MeanToy target(4);
  Tensor pixels = torch::empty({1, 3, 4, 4});
  const std::vector<float> bright = {.9f, .7f, .6f, .5f};
  for (int cell = 0; cell < 4; ++cell)
    pixels.slice(2, 2 * (cell / 2), 2 * (cell / 2) + 2)
        .slice(3, 2 * (cell % 2), 2 * (cell % 2) + 2)
        .fill_(bright[cell]);
  const auto images = checks::metric_images_of(target, pixels, kFirstClass);
  const auto value = [&](std::vector<float> sums) {
    const Tensor map =
        torch::tensor(sums).view({1, 1, 2, 2}).repeat_interleave(2, 2).repeat_interleave(2, 3).squeeze(1);
    return checks::measured("idsds:grid=2", target, images, map)[0];
  };
  EXPECT_NEAR(value({4, 3, 2, 1}).values.at("idsds"), 1, 1e-12);
  EXPECT_NEAR(value({1, 2, 3, 4}).values.at("idsds"), -1, 1e-12);
  EXPECT_NEAR(value({4, 2, 3, 1}).values.at("idsds"), 0.8, 1e-12);  // 1 - 6 * 2 / (4 * 15)
  EXPECT_FALSE(value({1, 1, 1, 1}).missing.empty());
  EXPECT_THROW(checks::measured("idsds:grid=5", target, images, torch::rand({1, 4, 4})), Error);
}

TEST(SingleDeletion, CellsOfUnevenSidesCoverEveryPixel) {
  checks::MeanToy target(7);
  const auto images = checks::metric_images_of(target, torch::rand({1, 3, 7, 7}), kFirstClass);
  // A map that is each pixel's own cost ranks the cells nearly as they cost; its sum is split over all cells.
  const Tensor cost = images.pixels.select(1, 0) - 0.485;
  EXPECT_GT(checks::measured("idsds:grid=3", target, images, cost)[0].values.at("idsds"), 0.99);
}

const Tensor kSegMap = torch::tensor({0., .1, .2, .1, .1, .9, .8, .2, .2, .7, 1., .1, 0., .3, .6, .1})
                           .to(torch::kFloat32)
                           .view({1, 4, 4});
const Tensor kSegMask =
    torch::tensor({0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0}).to(torch::kBool).view({4, 4});

TEST(Segmentation, ReproducesTheWorkedExample) {
  checks::MeanToy target(4);
  auto images = checks::metric_images_of(target, torch::rand({1, 3, 4, 4}), kFirstClass);
  EXPECT_EQ(checks::measured("seg-miou", target, images, kSegMap)[0].missing, "no mask");
  images.annotations[0].mask = kSegMask;
  const auto values = checks::measured("seg-miou", target, images, kSegMap)[0].values;
  const auto of_means = [&](const std::string& name) {
    std::map<std::string, double> parts;
    for (const auto& [key, value] : values)
      if (key.starts_with(name + "@")) parts[key.substr(name.size() + 1)] = value;
    return metric_record(name).of_means(parts);
  };
  EXPECT_EQ(values.at("seg-miou@background-both"), 10);
  EXPECT_EQ(values.at("seg-miou@object-both"), 4);
  EXPECT_EQ(values.at("seg-miou@background-either"), 12);
  EXPECT_EQ(values.at("seg-miou@object-either"), 6);
  EXPECT_NEAR(of_means("seg-miou"), 0.75, 1e-12);
  EXPECT_NEAR(of_means("seg-accuracy"), 0.8, 1e-12);
  EXPECT_NEAR(values.at("seg-map"), 0.978612, 1e-5);
  EXPECT_NEAR(values.at("seg-map-binary"), 0.828125, 1e-12);
  EXPECT_NEAR(values.at("seg-f1-rows"), 0.5, 1e-12);
  EXPECT_NEAR(values.at("seg-f1"), 0.8, 1e-12);
}

TEST(Segmentation, AveragePrecisionOfABinaryMapIsTheShortFormula) {
  torch::manual_seed(1);
  checks::MeanToy target(9);
  auto images = checks::metric_images_of(target, torch::rand({1, 3, 9, 9}), kFirstClass);
  for (int round = 0; round < 20; ++round) {
    images.annotations[0].mask = torch::rand({9, 9}) < 0.3;
    const Tensor binary = (torch::rand({1, 9, 9}) < 0.4).to(torch::kFloat32);
    const auto values = checks::measured("seg-map", target, images, binary)[0].values;
    EXPECT_NEAR(values.at("seg-map"), values.at("seg-map-binary"), 1e-12);
  }
}

TEST(Localization, PointsMeasuresEnergyAndDrawsABox) {
  checks::MeanToy target(6);
  auto images = checks::metric_images_of(target, torch::rand({1, 3, 6, 6}), kFirstClass);
  // A strong part of 2 x 3 pixels, a stronger single pixel away from it, and something negative.
  Tensor map = torch::zeros({1, 6, 6});
  map[0].slice(0, 1, 3).slice(1, 1, 4).fill_(2);
  map[0][5][5] = 4;
  map[0][0][5] = -1;
  const auto values = [&](const std::string& spec) {
    return checks::measured(spec, target, images, map)[0].values;
  };
  EXPECT_EQ(checks::measured("energy", target, images, map)[0].missing, "no box and no mask");
  images.annotations[0].boxes = {{1, 1, 4, 4}};
  EXPECT_EQ(values("pointing").at("pointing"), 0);
  EXPECT_EQ(values("pointing:tolerance=2").at("pointing"), 0);  // the nearest pixel inside is 2.83 away
  EXPECT_EQ(values("pointing:tolerance=3").at("pointing"), 1);
  EXPECT_NEAR(values("energy").at("energy"), 12.0 / 16, 1e-6);
  // Scaled, zero is 0.2: at 0.3 the part is rows 1..2, columns 1..3, and 6 of the box's 9 pixels.
  EXPECT_NEAR(values("box-iou:threshold=0.3").at("box-iou"), 6.0 / 9, 1e-9);
  images.annotations[0].boxes.push_back({5, 5, 6, 6});
  EXPECT_EQ(values("pointing").at("pointing"), 1);
  EXPECT_NEAR(values("energy").at("energy"), 1, 1e-6);
  // A mask alone gives its box; asked for, its own pixels count.
  images.annotations[0] = {torch::zeros({6, 6}, torch::kBool), {}};
  EXPECT_EQ(checks::measured("energy", target, images, map)[0].missing, "no box and no mask");
  images.annotations[0].mask[1][1] = true;
  images.annotations[0].mask[2][3] = true;
  EXPECT_NEAR(values("energy").at("energy"), 12.0 / 16, 1e-6);
  EXPECT_NEAR(values("energy:inside=mask").at("energy"), 4.0 / 16, 1e-6);
  EXPECT_NEAR(values("box-iou:threshold=0.3").at("box-iou"), 1, 1e-9);
}

TEST(Catalog, EveryRecordBelongsToSomethingAndDifferencesHaveTheirParts) {
  for (const auto& record : metric_catalog()) {
    EXPECT_EQ(record.parts.empty(), record.of_curves || record.make) << record.name;
    EXPECT_FALSE(record.summary.empty()) << record.name;
    for (const auto& part : record.parts) EXPECT_EQ(metric_record(part).need, record.need) << record.name;
    if (record.parts.size() == 2) {
      EXPECT_FALSE(metric_record(record.parts[0]).higher_is_better) << record.name;
      EXPECT_TRUE(metric_record(record.parts[1]).higher_is_better) << record.name;
    }
  }
}

}  // namespace
}  // namespace aha
