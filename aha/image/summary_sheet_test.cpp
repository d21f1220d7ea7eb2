#include "aha/image/summary_sheet.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "aha/base/error.h"
#include "aha/image/draw.h"

namespace aha {
namespace {

constexpr int kEmptyBorder = 32;

SummarySheet sheet_with(int width, int height, const Box& seen, const std::vector<float>& map) {
  SummarySheet sheet;
  sheet.photo = plain_image(width, height, {40, 90, 60});
  sheet.seen = seen;
  sheet.values = map;
  sheet.width = sheet.height = 8;
  sheet.title = "Egyptian cat";
  sheet.probability = "81.3 %";
  sheet.subtitle = "aha on vit_ti_16";
  sheet.caption = "cat.jpg";
  return sheet;
}

SheetCurves falling() {
  return {
      0.2, 0.5, {0.8, 0.7, 0.5, 0.3, 0.2, 0.1, 0.1, 0, 0, 0}, {0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0, 0}};
}

std::vector<float> ramp() {
  std::vector<float> map(64);
  for (size_t i = 0; i < map.size(); ++i) map[i] = static_cast<float>(i);
  return map;
}

int pixels_of(const Image& image, const Color& color) {
  int found = 0;
  for (size_t i = 0; i < image.rgb.size(); i += 3)
    found += std::equal(color.begin(), color.end(), image.rgb.begin() + static_cast<std::ptrdiff_t>(i));
  return found;
}

void expect_white_border(const Image& sheet) {
  for (int y = 0; y < sheet.height; ++y)
    for (int x = 0; x < sheet.width; ++x) {
      if (x >= kEmptyBorder && x < sheet.width - kEmptyBorder && y >= kEmptyBorder &&
          y < sheet.height - kEmptyBorder)
        continue;
      const uint8_t* pixel = sheet.row(y) + static_cast<size_t>(x) * 3;
      ASSERT_TRUE(pixel[0] == 255 && pixel[1] == 255 && pixel[2] == 255) << x << ", " << y;
    }
}

TEST(SummarySheet, NothingIsCutWhateverTheShapesAndTheLengthsOfNames) {
  const auto map = ramp();
  struct Shape {
    int width, height;
    Box seen;
  };
  for (const auto& [width, height, seen] :
       {Shape{451, 300, {75, 0, 375, 300}}, Shape{300, 900, {0, 300, 300, 600}},
        Shape{32, 32, {0, 0, 32, 32}}, Shape{2000, 90, {955, 0, 1045, 90}}, Shape{20, 20, {-6, -6, 26, 26}},
        Shape{1, 1600, {0, 799.8, 1, 800.2}}}) {
    SummarySheet sheet = sheet_with(width, height, seen, map);
    expect_white_border(summary_sheet(sheet));
    sheet.curves = sheet.random = falling();
    sheet.title = std::string(300, 'W');
    sheet.subtitle = sheet.caption = std::string(300, 'g');
    HeatOptions heat;
    heat.contours = true;
    const Image drawn = summary_sheet(sheet, heat);
    expect_white_border(drawn);
    EXPECT_LE(drawn.width, 2600) << width << " x " << height;
  }
}

TEST(SummarySheet, HasTheCurvesOnlyWhereThereIsAScore) {
  constexpr Color kDeletionColor = {213, 94, 0};
  const auto map = ramp();
  SummarySheet sheet = sheet_with(64, 64, {0, 0, 64, 64}, map);
  const Image without = summary_sheet(sheet);
  sheet.curves = falling();
  const Image with = summary_sheet(sheet);
  EXPECT_GT(with.width, without.width + 400);
  EXPECT_GT(pixels_of(with, kDeletionColor), 1000);
  EXPECT_EQ(pixels_of(without, kDeletionColor), 0);
}

TEST(SummarySheet, RefusesWhatCannotBeDrawn) {
  const auto map = ramp();
  EXPECT_THROW(summary_sheet(sheet_with(64, 64, {70, 0, 90, 20}, map)), Error);
  SummarySheet none = sheet_with(64, 64, {0, 0, 64, 64}, map);
  none.photo = Image();
  EXPECT_THROW(summary_sheet(none), Error);
}

}  // namespace
}  // namespace aha
