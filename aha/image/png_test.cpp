#include "aha/image/png.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"

namespace aha {
namespace {

TEST(PalettePng, IsReadBackInItsColors) {
  const std::vector<Color> palette = {{0, 0, 0}, {10, 20, 30}, {255, 128, 1}};
  const std::vector<uint8_t> indices = {0, 1, 2, 2, 1, 0};
  const std::string bytes = palette_png_bytes(indices, 3, 2, palette);
  const Image image = decode_png(std::as_bytes(std::span(bytes)), "palette", {}).image;
  ASSERT_EQ(image.width, 3);
  ASSERT_EQ(image.height, 2);
  for (size_t i = 0; i < indices.size(); ++i)
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(image.rgb[3 * i + c], palette[indices[i]][c]);
}

TEST(PalettePng, OfASmoothMapIsSmall) {
  std::vector<uint8_t> indices(128 * 128);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<uint8_t>(i / 128 / 2);
  const std::vector<Color> palette(64);
  EXPECT_LT(palette_png_bytes(indices, 128, 128, palette).size(), 1000u);
}

TEST(PalettePng, KeepsAnAlphaForEachColor) {
  const std::vector<Color> palette = {{0, 0, 0}, {10, 20, 30}};
  const std::vector<uint8_t> indices = {0, 1}, alpha = {0, 200};
  const std::string bytes = palette_png_bytes(indices, 2, 1, palette, alpha);
  EXPECT_NE(bytes.find(std::string("tRNS\0\xC8", 6)), std::string::npos);
  EXPECT_EQ(palette_png_bytes(indices, 2, 1, palette).find("tRNS"), std::string::npos);
  EXPECT_THROW(palette_png_bytes(indices, 2, 1, palette, std::vector<uint8_t>{1}), Error);
}

TEST(PalettePng, RefusesIndicesWithoutAColor) {
  const std::vector<Color> palette(2);
  EXPECT_THROW(palette_png_bytes(std::vector<uint8_t>{0, 2}, 2, 1, palette), Error);
  EXPECT_THROW(palette_png_bytes(std::vector<uint8_t>{0}, 2, 1, palette), Error);
  EXPECT_THROW(palette_png_bytes(std::vector<uint8_t>{0}, 1, 1, {}), Error);
}

}  // namespace
}  // namespace aha
