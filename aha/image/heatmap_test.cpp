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

TEST(Heatmap, AFewExtremePixelsDoNotHideTheOthers) {
  HeatOptions gray;
  gray.colors = "gray";
  std::vector<float> map(1000);
  for (size_t i = 0; i < map.size(); ++i) map[i] = static_cast<float>(i % 500);
  const Image before = heat_image(map, 50, 20, gray);
  map[499] = 1e9f;
  map[0] = -1e9f;
  const Image after = heat_image(map, 50, 20, gray);
  EXPECT_NEAR(pixel(after, 25, 5)[0], pixel(before, 25, 5)[0], 1);
  EXPECT_EQ(pixel(after, 49, 9)[0], 255);
  EXPECT_EQ(pixel(after, 0, 0)[0], 0);
}

// A photo without a plain spot.
Image photo_of(int width, int height) {
  Image image(width, height);
  for (size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = static_cast<uint8_t>(40 + i * 37 % 180);
  return image;
}

Image cut_out(const Image& image, int x, int y, int width, int height) {
  Image out(width, height);
  for (int j = 0; j < height; ++j)
    std::copy_n(image.row(y + j) + static_cast<size_t>(x) * 3, static_cast<size_t>(width) * 3, out.row(j));
  return out;
}

TEST(Overlay, ThePhotoIsUntouchedWhereTheMapIsLowAndColoredWhereItIsHigh) {
  const Image photo = photo_of(101, 1);
  std::vector<float> ramp(101);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i);
  HeatOptions options;
  options.scale = "rank";
  options.opacity = 1;
  const Image result = overlay(photo, ramp, 101, 1, options), colors = heat_image(ramp, 101, 1, options);
  for (int x = 0; x <= 20; ++x) EXPECT_EQ(pixel(result, x, 0), pixel(photo, x, 0)) << x;
  for (int x = 90; x <= 100; ++x) EXPECT_EQ(pixel(result, x, 0), pixel(colors, x, 0)) << x;
  double before = -1;
  for (int x = 0; x <= 100; ++x) {
    const double opacity = heat_opacity(x / 100.0, options);
    EXPECT_GE(opacity, before);
    before = opacity;
  }
  options.opacity = 0;
  EXPECT_EQ(overlay(photo, ramp, 101, 1, options).rgb, photo.rgb);
}

TEST(Overlay, ThePhotoShowsThroughTheHighestColor) {
  Image image(4, 1);
  image.rgb = {0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255};
  const std::vector<float> map = {0, 1, 0, 1};
  const Image result = overlay(image, map, 4, 1);
  EXPECT_GT(lightness(pixel(result, 3, 0)) - lightness(pixel(result, 1, 0)), 10);
}

TEST(Overlay, ACoarseMapIsInterpolatedBetweenPixelCenters) {
  HeatOptions options;
  options.colors = "gray";
  const std::vector<float> map = {0, 1};
  const Image result = heat_image(map, 2, 1, 4, 1, {0, 0, 4, 1}, options);
  EXPECT_EQ(pixel(result, 0, 0)[0], 0);
  EXPECT_EQ(pixel(result, 1, 0)[0], 64);
  EXPECT_EQ(pixel(result, 2, 0)[0], 191);
  EXPECT_EQ(pixel(result, 3, 0)[0], 255);
}

TEST(Overlay, AMapOfAPartIsPutBackWhereThePartIs) {
  const Image photo = photo_of(60, 40);
  std::vector<float> map(64);
  for (size_t i = 0; i < map.size(); ++i) map[i] = static_cast<float>(i * 29 % 64);
  HeatOptions options;
  options.contours = true;
  const Image whole = overlay(photo, map, 8, 8, {12, 4, 44, 36}, options),
              alone = overlay(cut_out(photo, 12, 4, 32, 32), map, 8, 8, options);
  // Contours are drawn beyond the part by less than their width.
  EXPECT_EQ(cut_out(whole, 15, 7, 26, 26).rgb, cut_out(alone, 3, 3, 26, 26).rgb);
  const Color outside = pixel(whole, 2, 2), before = pixel(photo, 2, 2);
  EXPECT_EQ(outside[0], outside[1]);
  EXPECT_EQ(outside[1], outside[2]);
  EXPECT_GT(luminance(outside), luminance(before));
  EXPECT_LT(lightness(pixel(whole, 11, 20)), 20) << "a line around the part";
  const Image colors = heat_image(map, 8, 8, 60, 40, {12, 4, 44, 36}, options);
  EXPECT_EQ(pixel(colors, 2, 2), (Color{128, 128, 128}));
  EXPECT_EQ(cut_out(colors, 12, 4, 32, 32).rgb, heat_image(map, 8, 8, 32, 32, {0, 0, 32, 32}, options).rgb);
}

TEST(Overlay, APartThatReachesBeyondThePhotoMarksNothing) {
  const Image photo = photo_of(20, 20);
  EXPECT_EQ(with_marked_part(photo, {-3, -3, 23, 23}).rgb, photo.rgb);
  EXPECT_NE(with_marked_part(photo, {-3, 4, 23, 16}).rgb, photo.rgb);
}

TEST(Overlay, ContoursRunAroundTheTopTenthQuarterAndHalfOfThePixels) {
  std::vector<float> ramp(200 * 50);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i % 200);
  Image photo(200, 50);
  std::fill(photo.rgb.begin(), photo.rgb.end(), uint8_t{60});
  HeatOptions options;
  options.opacity = 0;
  options.contours = true;
  const Image result = overlay(photo, ramp, 200, 50, options);
  for (const int x : {100, 150, 180}) {
    const int brightest = std::max(pixel(result, x, 25)[0], pixel(result, x - 1, 25)[0]);
    EXPECT_GT(brightest, 200) << x;
  }
  int touched = 0;
  for (int x = 0; x < 200; ++x) touched += pixel(result, x, 25) != Color{60, 60, 60};
  EXPECT_GE(touched, 6);
  EXPECT_LE(touched, 18);
  const std::vector<float> constant(200 * 50, 1.f);
  EXPECT_EQ(overlay(photo, constant, 200, 50, options).rgb, photo.rgb);
}

TEST(ColorBar, RunsFromTheBareImageToTheHighestColor) {
  HeatOptions options;
  options.opacity = 1;
  const Image bar = color_bar(64, 3, options);
  EXPECT_EQ(pixel(bar, 0, 1), (Color{128, 128, 128}));
  EXPECT_EQ(pixel(bar, 63, 2), color_table(ColorMap::kEmber)[255]);
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
