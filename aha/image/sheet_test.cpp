#include "aha/image/sheet.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "aha/base/error.h"
#include "aha/image/text.h"

namespace aha {
namespace {

const std::vector<float> kMap = {0, 1, 2, 3};

SheetBlock block_with(int maps, int side = 32) {
  SheetBlock block;
  block.image = Image(side, side);
  block.title = "frog";
  block.lines = {"99.1 %", "a target", "0001.png"};
  for (int i = 0; i < maps; ++i)
    block.maps.push_back({kMap, 2, 2, "method", "key=value", "Ins-Del 0.123", "1 F + 1 B", i == 1});
  return block;
}

Color pixel(const Image& image, int x, int y) {
  const uint8_t* at = image.row(y) + static_cast<size_t>(x) * 3;
  return {at[0], at[1], at[2]};
}

constexpr Color kWhite = {255, 255, 255};

TEST(Sheet, AnyNumberOfMapsFitsTheWidth) {
  for (const int maps : {1, 2, 4, 5, 9, 16, 30, 31, 60})
    for (const int side : {1, 32, 224, 3000}) {
      const Image sheet = sheet_of({block_with(maps, side)}, "a remark");
      EXPECT_LE(sheet.width, kSheetWidth) << maps;
      EXPECT_GT(sheet.width, 500) << maps;
      EXPECT_GT(sheet.height, 400) << maps;
    }
  EXPECT_LT(sheet_of({block_with(30)}, "").height, 1600);
}

TEST(Sheet, SixMapsAreTwoRowsOfThree) {
  EXPECT_EQ(sheet_of({block_with(6)}, "").width, sheet_of({block_with(3)}, "").width);
  EXPECT_LT(sheet_of({block_with(6)}, "").width, sheet_of({block_with(4)}, "").width);
}

TEST(Sheet, TheMarginsStayWhiteWhateverTheTexts) {
  SheetBlock block = block_with(7);
  const std::string longest(3000, 'W');
  block.title = longest;
  block.lines = {longest, longest + "\n\x01\xff"};
  for (auto& map : block.maps) map.name = map.options = map.score = map.cost = longest;
  const Image sheet = sheet_of({block, block}, longest);
  for (int y = 0; y < sheet.height; ++y)
    for (int x = 0; x < sheet.width; ++x) {
      if (x >= 30 && x < sheet.width - 30 && y >= 30 && y < sheet.height - 30) continue;
      ASSERT_EQ(pixel(sheet, x, y), kWhite) << x << ", " << y;
    }
}

TEST(Sheet, ASmallPhotoKeepsItsPixels) {
  SheetBlock block = block_with(4, 2);
  block.image.rgb = {255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9};
  const Image sheet = sheet_of({block}, "");
  // The photo stands at the upper left, 320 pixels wide.
  EXPECT_EQ(pixel(sheet, 40, 40), (Color{255, 0, 0}));
  EXPECT_EQ(pixel(sheet, 40 + 159, 40 + 159), (Color{255, 0, 0}));
  EXPECT_EQ(pixel(sheet, 40 + 160, 40), (Color{0, 255, 0}));
  EXPECT_EQ(pixel(sheet, 40, 40 + 319), (Color{0, 0, 255}));
  EXPECT_EQ(pixel(sheet, 40 + 320, 40), kWhite);
}

TEST(Sheet, APhotoOfUsualSizeFillsItsColumn) {
  const Image sheet = sheet_of({block_with(4, 224)}, "");  // black
  EXPECT_EQ(pixel(sheet, 40 + 319, 40 + 319), (Color{0, 0, 0}));
  EXPECT_EQ(pixel(sheet, 40 + 320, 40), kWhite);
}

TEST(Sheet, OnlyTheBestIsFramed) {
  SheetBlock block = block_with(3), none = block;
  for (auto& map : none.maps) map.best = false;
  const Image with = sheet_of({block}, ""), without = sheet_of({none}, "");
  ASSERT_EQ(with.rgb.size(), without.rgb.size());
  int left = with.width, right = 0;
  for (int y = 0; y < with.height; ++y)
    for (int x = 0; x < with.width; ++x)
      if (pixel(with, x, y) != pixel(without, x, y)) left = std::min(left, x), right = std::max(right, x);
  const int tile = 256, first = 40 + 320 + 40, second = first + tile + 20;  // 8 x 32
  EXPECT_GE(left, second - 20);
  EXPECT_LE(right, second + tile + 20);
}

TEST(Sheet, EachImageHasItsBlockAndTheLegendStandsOnce) {
  const int one = sheet_of({block_with(6)}, "").height,
            three = sheet_of({block_with(6), block_with(6), block_with(6)}, "").height;
  EXPECT_GT(three, 2 * one);
  EXPECT_LT(three, 3 * one);
}

TEST(Sheet, NothingToShowIsRefused) {
  EXPECT_THROW(sheet_of({}, ""), Error);
  EXPECT_THROW(sheet_of({block_with(0)}, ""), Error);
  SheetBlock flat = block_with(2);
  flat.image = Image(4, 2);
  EXPECT_THROW(sheet_of({flat}, ""), Error);
}

}  // namespace
}  // namespace aha
