#include "aha/image/heatmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "aha/base/error.h"

namespace aha {
namespace {

using testing::HasSubstr;

Color pixel(const Image& image, int x, int y) {
  const uint8_t* at = image.row(y) + static_cast<size_t>(x) * 3;
  return {at[0], at[1], at[2]};
}

// Relative luminance of sRGB (Rec. 709 weights on linear light).
double luminance(const Color& color) {
  const auto linear = [](double x) { return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(color[0] / 255.0) + 0.7152 * linear(color[1] / 255.0) +
         0.0722 * linear(color[2] / 255.0);
}

// CIE L*, 0..100.
double lightness(const Color& color) {
  const double y = luminance(color);
  return y > 216.0 / 24389 ? 116 * std::cbrt(y) - 16 : y * 24389 / 27;
}

TEST(Colors, EmberRisesInLightnessEverywhere) {
  const ColorTable& table = color_table(ColorMap::kEmber);
  for (int i = 4; i < 256; ++i) EXPECT_GT(luminance(table[i]), luminance(table[i - 4])) << i;
  EXPECT_LT(lightness(table[0]), 10);
  EXPECT_GT(lightness(table[255]), 90);
}

TEST(Colors, EmberHasNoJumps) {
  // Evenly spread, a channel moves by 1 a step; where hue meets the border of what a screen shows it moves
  // faster, and 8 of 255 is still no edge.
  const ColorTable& table = color_table(ColorMap::kEmber);
  for (int i = 1; i < 256; ++i)
    for (int c = 0; c < 3; ++c) EXPECT_LE(std::abs(table[i][c] - table[i - 1][c]), 8) << i;
}

TEST(Colors, JetAndGrayAreWhatTheyAlwaysWere) {
  EXPECT_EQ(color_table(ColorMap::kJet)[0], (Color{0, 0, 128}));
  EXPECT_EQ(color_table(ColorMap::kJet)[255], (Color{128, 0, 0}));
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(color_table(ColorMap::kGray)[i], (Color{uint8_t(i), uint8_t(i), uint8_t(i)}));
}

TEST(Colors, TurboGoesFromBlueOverGreenToRed) {
  const ColorTable& table = color_table(ColorMap::kTurbo);
  const auto strongest = [&](int i) { return std::ranges::max_element(table[i]) - table[i].begin(); };
  EXPECT_EQ(strongest(40), 2);
  EXPECT_EQ(strongest(128), 1);
  EXPECT_EQ(strongest(230), 0);
}

TEST(Colors, AnUnknownNameIsRefusedWithTheKnownOnes) {
  try {
    color_map_from_text("viridis");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("ember"));
  }
}

TEST(Heatmap, LowestAndHighestGetTheEndsOfTheColors) {
  const std::vector<float> map = {-3, 5, 1, 0};
  const Image image = heat_image(map, 2, 2);
  const ColorTable& table = color_table(ColorMap::kEmber);
  EXPECT_EQ(pixel(image, 0, 0), table[0]);
  EXPECT_EQ(pixel(image, 1, 0), table[255]);
  EXPECT_EQ(pixel(image, 0, 1), table[128]);
}

TEST(Heatmap, AConstantMapIsOneColor) {
  const std::vector<float> map(6, 2.5f);
  for (const char* scale : {"value", "rank"}) {
    HeatOptions options;
    options.scale = scale;
    const Image image = heat_image(map, 3, 2, options);
    EXPECT_EQ(pixel(image, 0, 0), color_table(ColorMap::kEmber)[128]);
    EXPECT_EQ(pixel(image, 2, 1), pixel(image, 0, 0));
  }
}

TEST(Heatmap, RanksIgnoreHowFarValuesAreApart) {
  HeatOptions options;
  options.scale = "rank";
  options.colors = "gray";
  const std::vector<float> map = {0, 1e-6f, 1e9f, -7, 1e-6f};
  const Image image = heat_image(map, 5, 1, options);
  EXPECT_EQ(pixel(image, 3, 0)[0], 0);
  EXPECT_EQ(pixel(image, 0, 0)[0], 64);
  EXPECT_EQ(pixel(image, 1, 0)[0], 159);  // ranks 2 and 3 share 2.5 / 4
  EXPECT_EQ(pixel(image, 4, 0)[0], 159);
  EXPECT_EQ(pixel(image, 2, 0)[0], 255);
}

TEST(Heatmap, ExtremeFiniteValuesDoNotOverflow) {
  const float most = std::numeric_limits<float>::max();
  HeatOptions gray;
  gray.colors = "gray";
  const std::vector<float> map = {-most, 0, most};
  EXPECT_EQ(pixel(heat_image(map, 3, 1, gray), 1, 0)[0], 128);
}

TEST(Heatmap, NonFiniteValuesAndWrongSizesAreRefused) {
  const std::vector<float> bad = {0, 1, std::nanf(""), 2}, endless = {0, INFINITY};
  EXPECT_THROW(heat_image(bad, 2, 2), Error);
  EXPECT_THROW(heat_image(endless, 2, 1), Error);
  EXPECT_THROW(heat_image(endless, 2, 2), Error);
  EXPECT_THROW(overlay(Image(4, 4), bad, 2, 2), Error);
  EXPECT_THROW(overlay(Image(), endless, 2, 1), Error);
}

TEST(Overlay, OpacityRunsFromTheImageToTheColors) {
  Image image(2, 1);
  image.rgb = {10, 20, 30, 200, 100, 50};
  const std::vector<float> map = {0, 1};
  HeatOptions options;
  options.opacity = 0;
  EXPECT_EQ(overlay(image, map, 2, 1, options).rgb, image.rgb);
  options.opacity = 1;
  EXPECT_EQ(overlay(image, map, 2, 1, options).rgb, heat_image(map, 2, 1, options).rgb);
  options.opacity = 0.5;
  options.colors = "gray";
  EXPECT_EQ(overlay(image, map, 2, 1, options).rgb, (std::vector<uint8_t>{5, 10, 15, 228, 178, 153}));
}

TEST(Overlay, ACoarseMapIsInterpolatedBetweenPixelCenters) {
  HeatOptions options;
  options.opacity = 1;
  options.colors = "gray";
  const std::vector<float> map = {0, 1};
  const Image result = overlay(Image(4, 1), map, 2, 1, options);
  EXPECT_EQ(pixel(result, 0, 0)[0], 0);
  EXPECT_EQ(pixel(result, 1, 0)[0], 64);
  EXPECT_EQ(pixel(result, 2, 0)[0], 191);
  EXPECT_EQ(pixel(result, 3, 0)[0], 255);
}

TEST(HeatOptions, FieldsRefuseWhatIsNotOffered) {
  HeatOptions options;
  set_all_from_spec(fields(options), "colors=jet:opacity=0.25", "--heat");
  EXPECT_EQ(options.colors, "jet");
  EXPECT_EQ(options.opacity, 0.25);
  EXPECT_THROW(set_all_from_spec(fields(options), "colors=pink", "--heat"), Error);
  EXPECT_THROW(set_all_from_spec(fields(options), "opacity=2", "--heat"), Error);
}

}  // namespace
}  // namespace aha
