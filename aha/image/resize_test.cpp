#include "aha/image/resize.h"

#include <gtest/gtest.h>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/rng.h"
#include "aha/image/resize_crop.h"
#include "aha/image/resize_passes.h"

namespace aha {
namespace {

Image pattern(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c)
        image.row(y)[x * 3 + c] =
            static_cast<uint8_t>(x * 7 + y * 13 + c * 31 + x * y * (c + 1) + (x / 3) * (y / 5) * 17);
  return image;
}

Image noise(int width, int height, uint64_t seed) {
  Image image(width, height);
  Rng rng(seed);
  for (uint8_t& value : image.rgb) value = static_cast<uint8_t>(rng.bits() >> 24);
  return image;
}

TEST(Resize, MatchesPillowBitForBit) {
  // The first 16 digits of the SHA-256 of Pillow 9.4's result on pattern(); tests/parity compares a thousand
  // more sizes live.
  struct Case {
    int width, height, to_width, to_height;
    Filter filter;
    const char* digest;
  };
  const Case cases[] = {
      {50, 37, 20, 31, Filter::kBilinear, "139893e313643713"},
      {50, 37, 20, 31, Filter::kBicubic, "f3f203ee504495df"},
      {50, 37, 20, 31, Filter::kNearest, "bd50e032034cb2c0"},
      {50, 37, 93, 111, Filter::kBilinear, "26c3c756c104a448"},
      {50, 37, 93, 111, Filter::kBicubic, "b0db5a50a14c2f33"},
      {50, 37, 93, 111, Filter::kNearest, "9ef8d1922cb98541"},
      {64, 48, 64, 17, Filter::kBilinear, "4c9df511a4db75fb"},
      {64, 48, 64, 17, Filter::kBicubic, "7a6a77f4cfb261dd"},
      {64, 48, 64, 17, Filter::kNearest, "d0d42206e1d32863"},
      {33, 48, 80, 48, Filter::kBilinear, "e3ad28051e7b53e1"},
      {33, 48, 80, 48, Filter::kBicubic, "9868f912bff320f4"},
      {33, 48, 80, 48, Filter::kNearest, "9856545f59af8c6e"},
      {301, 7, 5, 5, Filter::kBilinear, "3496a080d762a083"},
      {301, 7, 5, 5, Filter::kBicubic, "686d4147424cddae"},
      {301, 7, 5, 5, Filter::kNearest, "e6a5641bc9ac167d"},
      {2000, 1, 3, 1, Filter::kBilinear, "f05563b76cb25486"},
      {2000, 1, 3, 1, Filter::kBicubic, "279606aaf117acff"},
      {2000, 1, 3, 1, Filter::kNearest, "18113fbbcea01c50"},
  };
  for (const Case& c : cases) {
    const Image result = resized(pattern(c.width, c.height), c.to_width, c.to_height, c.filter);
    EXPECT_EQ(result.width, c.to_width);
    EXPECT_EQ(result.height, c.to_height);
    EXPECT_EQ(sha256_of_bytes(std::as_bytes(std::span(result.rgb))).substr(0, 16), c.digest)
        << c.width << "x" << c.height << " -> " << c.to_width << "x" << c.to_height;
  }
}

TEST(Resize, Avx2GivesTheBytesOfThePlainLoops) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  Rng rng(3);
  for (int i = 0; i < 200; ++i) {
    const auto side = [&] { return 1 + static_cast<int>(rng.below(90)); };
    const Image image = noise(side(), side(), static_cast<uint64_t>(i));
    const int width = side(), height = side();
    for (const Filter filter : {Filter::kBilinear, Filter::kBicubic})
      ASSERT_EQ(resized_with(avx2_passes(), image, width, height, filter).rgb,
                resized_with(portable_passes(), image, width, height, filter).rgb)
          << image.width << "x" << image.height << " -> " << width << "x" << height;
  }
}

TEST(Resize, ThousandsOfTapsDoNotOverflow) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  Image wide(9000, 2);
  std::fill(wide.rgb.begin(), wide.rgb.end(), uint8_t{255});
  const Image result = resized_with(avx2_passes(), wide, 1, 1, Filter::kBilinear);
  EXPECT_EQ(result.rgb, resized_with(portable_passes(), wide, 1, 1, Filter::kBilinear).rgb);
  for (const uint8_t value : result.rgb) EXPECT_EQ(value, 255);
}

TEST(Resize, AFlatImageStaysFlat) {
  Image flat(31, 17);
  std::fill(flat.rgb.begin(), flat.rgb.end(), uint8_t{201});
  for (const Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic})
    for (const uint8_t value : resized(flat, 50, 9, filter).rgb) ASSERT_EQ(value, 201);
}

TEST(Resize, ShortSideTruncatesTheLongOneAsTorchvision) {
  const auto size = [](int width, int height, int side) {
    const Image image = resized_short_side(Image(width, height), side, Filter::kBilinear);
    return std::pair(image.width, image.height);
  };
  EXPECT_EQ(size(500, 375, 256), std::pair(341, 256));
  EXPECT_EQ(size(333, 500, 256), std::pair(256, 384));
  EXPECT_EQ(size(501, 375, 256), std::pair(342, 256));
  EXPECT_EQ(size(256, 300, 256), std::pair(256, 300));
}

TEST(Resize, CenterCropRoundsHalvesToEvenAndPadsWithBlack) {
  const auto first_red = [](int width) {  // the column of the source that is first in a crop to 224
    Image image(width, 224);
    for (int x = 0; x < width; ++x) image.row(0)[x * 3] = static_cast<uint8_t>(x);
    return static_cast<int>(center_cropped(image, 224).rgb[0]);
  };
  EXPECT_EQ(first_red(341), 58);  // 58.5
  EXPECT_EQ(first_red(309), 42);  // 42.5
  EXPECT_EQ(first_red(311), 44);  // 43.5
  EXPECT_EQ(first_red(342), 59);
  Image small(1, 2);
  std::fill(small.rgb.begin(), small.rgb.end(), uint8_t{9});
  const Image padded = center_cropped(small, 4);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x)
      EXPECT_EQ(padded.row(y)[x * 3], x == 1 && (y == 1 || y == 2) ? 9 : 0) << x << "," << y;
}

TEST(Resize, CroppingFirstGivesTheBytesOfCroppingLast) {
  Rng rng(5);
  for (int i = 0; i < 100; ++i) {
    const auto side = [&] { return 1 + static_cast<int>(rng.below(70)); };
    const Image image = noise(side(), side(), static_cast<uint64_t>(i));
    const int size = i % 5 == 0 ? std::min(image.width, image.height) : side(), crop = side();
    for (const Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kBicubic})
      ASSERT_EQ(resized_and_cropped(image, size, crop, filter).rgb,
                center_cropped(resized_short_side(image, size, filter), crop).rgb)
          << image.width << "x" << image.height << " to " << size << ", crop " << crop;
  }
  const Image strip = noise(1, 1 << 20, 1);  // 224 x 234881024 before the crop
  EXPECT_EQ(resized_and_cropped(strip, 224, 224, Filter::kBilinear).height, 224);
}

TEST(Resize, SizesThatCannotBeAreRefused) {
  EXPECT_THROW(resized(Image(3, 3), 0, 5, Filter::kBilinear), Error);
  EXPECT_THROW(resized(Image(3, 3), 5, -1, Filter::kNearest), Error);
  EXPECT_THROW(resized(Image(), 5, 5, Filter::kBicubic), Error);
  EXPECT_THROW(resized(Image(3, 3), 1 << 30, 1 << 30, Filter::kBilinear), Error);
  EXPECT_THROW(resized_short_side(Image(1, 60000), 60000, Filter::kBilinear), Error);
  EXPECT_THROW(center_cropped(Image(3, 3), 0), Error);
}

}  // namespace
}  // namespace aha
