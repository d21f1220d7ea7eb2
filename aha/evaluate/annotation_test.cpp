// Masks and boxes on their way from a data set to metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/files.h"
#include "aha/evaluate/evaluate.h"
#include "aha/testing/checks.h"
#include "aha/testing/toy_classifiers.h"

namespace aha {
namespace {

using ::testing::HasSubstr;

constexpr int kSize = 16, kCount = 6;

// Planted squares, known by mask or by box.
class Planted : public checks::MemoryDataset {
 public:
  enum Known { kNothing, kMasks, kBoxes, kWrongMasks, kLargeMasks };
  explicit Planted(Known known) : known_(known) {
    auto planted = checks::planted_images(kCount, kSize, 3);
    images = planted.data.images;
    labels.assign(kCount, -1);
    corner_ = planted.corner;
  }
  bool annotated() const override { return known_ != kNothing; }
  Annotation annotation(int64_t index) const override {
    const auto [top, left] = corner_[index];
    if (known_ == kBoxes)
      return {{},
              {{double(left), double(top), double(left + checks::kPlantedSide),
                double(top + checks::kPlantedSide)}}};
    const int side = known_ == kLargeMasks ? kSize + 1 : kSize;
    Image mask(side, side);
    for (int y = 0; y < kSize; ++y)
      for (int x = 0; x < kSize; ++x)
        mask.row(y)[3 * x] = (y >= top && y < top + checks::kPlantedSide && x >= left &&
                              x < left + checks::kPlantedSide) != (known_ == kWrongMasks);
    return {mask, {}};
  }

 private:
  Known known_;
  std::vector<std::array<int, 2>> corner_;
};

Summary summary_of(Planted::Known known, const std::vector<std::string>& metrics, const std::string& folder) {
  checks::PlantedToy target(kSize);
  EvaluateOptions options;
  options.methods = {"gradient", "random"};
  options.metrics = metrics;
  options.images = 0;
  options.timing_runs = 0;
  options.references = {"black"};
  return evaluate({target, nullptr}, Planted(known), options, folder, Context()).summary;
}

double value_of(const Summary& summary, const std::string& method, const std::string& metric) {
  const auto& found = summary.row(method, "predicted").metrics.at(metric);
  EXPECT_EQ(found.images, kCount) << metric;
  return found.value.mean;
}

TEST(Annotations, ReachTheMetricsThroughAnEvaluation) {
  const auto folder = checks::fresh_path("evaluate_annotations");
  const std::vector<std::string> metrics = {"seg-miou", "seg-map", "pointing",
                                            "energy",   "box-iou", "sparseness"};
  const auto masks = summary_of(Planted::kMasks, metrics, folder);
  for (const auto& metric : metrics)
    EXPECT_GT(value_of(masks, "gradient", metric), value_of(masks, "random", metric)) << metric;
  EXPECT_GT(value_of(masks, "gradient", "energy"), 0.8);
  // A square's mask and its box say the same to metrics that look at boxes.
  const auto boxes = summary_of(Planted::kBoxes, {"energy", "box-iou"}, folder);
  for (const char* metric : {"energy", "box-iou"})
    EXPECT_EQ(value_of(boxes, "gradient", metric), value_of(masks, "gradient", metric));
  // Another mask makes the stored values of these metrics stale, and no others.
  const auto wrong = summary_of(Planted::kWrongMasks, metrics, folder);
  EXPECT_LT(value_of(wrong, "gradient", "seg-miou"), 0.2);
  EXPECT_GT(value_of(masks, "gradient", "seg-miou"), 0.8);
  EXPECT_EQ(value_of(wrong, "gradient", "sparseness"), value_of(masks, "gradient", "sparseness"));
}

TEST(Annotations, MasksOfAnotherSizeAndDataWithoutAnyAreNamed) {
  const auto folder = checks::fresh_path("evaluate_no_annotations");
  EXPECT_THAT(checks::message_of([&] { summary_of(Planted::kNothing, {"seg-f1"}, folder); }),
              HasSubstr("which seg-f1 looks at, found none"));
  EXPECT_THAT(checks::message_of([&] { summary_of(Planted::kLargeMasks, {"seg-f1"}, folder); }, 1),
              HasSubstr("mask: expected 16 x 16 pixels as the image has, found 17 x 17"));
  // Nobody looks at masks: they are not read.
  EXPECT_EQ(summary_of(Planted::kLargeMasks, {"sparseness"}, folder).images.size(), size_t{kCount});
}

TEST(Annotations, EveryMetricThatAsksTheTargetGivesAValue) {
  const auto folder = checks::fresh_path("evaluate_every_metric");
  const auto found =
      summary_of(Planted::kMasks, {"road", "road-hits", "mas", "rise", "saco", "idsds", "adp"}, folder);
  for (const auto& metric : found.metrics)
    if (metric.name != "saco" && metric.name != "idsds") value_of(found, "gradient", metric.name);
  EXPECT_GT(value_of(found, "gradient", "road"), value_of(found, "random", "road"));
  EXPECT_GT(value_of(found, "gradient", "rise"), value_of(found, "random", "rise"));
  EXPECT_GT(value_of(found, "gradient", "mas"), value_of(found, "random", "mas"));
}

}  // namespace
}  // namespace aha
