#include "aha/image/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/rng.h"
#include "aha/image/png.h"
#include "aha/image/test_files.h"

namespace aha {
namespace {

using test_files::jpeg_of;
using test_files::test_image;
using test_files::webp_of;
using testing::HasSubstr;

Image decoded(const std::string& file, const ReadOptions& options = {}) {
  return image_from_bytes(std::as_bytes(std::span(file)), "photo", options);
}

std::string refusal(const std::string& file, const ReadOptions& options = {}) {
  try {
    decoded(file, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), HasSubstr("photo"));
    return error.what();
  }
  return "";
}

struct Sample {
  const char* name;
  std::string file;
};

std::vector<Sample> samples() {
  const Image image = test_image(40, 30);
  const std::vector<uint8_t> ink(40 * 30 * 4, 90), gray(40 * 30, 120);
  return {{"PNG", png_bytes(image)},
          {"JPEG", jpeg_of(40, 30, 3, image.rgb)},
          {"progressive JPEG", jpeg_of(40, 30, 3, image.rgb, "", true)},
          {"gray JPEG", jpeg_of(40, 30, 1, gray)},
          {"CMYK JPEG", jpeg_of(40, 30, 4, ink)},
          {"WebP", webp_of(image, false)},
          {"lossless WebP", webp_of(image, true)},
          {"GIF", test_files::gif_of(image, false)},
          {"interlaced GIF", test_files::gif_of(image, true)},
          {"TIFF", test_files::tiff_of(image, COMPRESSION_NONE)},
          {"LZW TIFF", test_files::tiff_of(image, COMPRESSION_LZW)},
          {"AVIF", test_files::avif_of(image)},
          {"BMP", test_files::bmp_of(image)}};
}

// A PNG's frame with any header, its checksums right.
std::string png_claiming(uint32_t width, uint32_t height) {
  const std::string whole = png_bytes(test_image(3, 2));
  std::string file = whole;
  for (int i = 0; i < 4; ++i) {
    file[16 + i] = static_cast<char>(width >> (24 - 8 * i) & 255);
    file[20 + i] = static_cast<char>(height >> (24 - 8 * i) & 255);
  }
  uint32_t crc = 0xFFFFFFFF;  // CRC-32 of type and content
  for (int i = 12; i < 29; ++i) {
    crc ^= static_cast<uint8_t>(file[i]);
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  crc = ~crc;
  for (int i = 0; i < 4; ++i) file[29 + i] = static_cast<char>(crc >> (24 - 8 * i) & 255);
  return file;
}

TEST(Read, LosslessFormatsGiveThePixelsBack) {
  const Image image = test_image(41, 29);
  EXPECT_EQ(decoded(png_bytes(image)).rgb, image.rgb);
  EXPECT_EQ(decoded(webp_of(image, true)).rgb, image.rgb);
}

TEST(Read, TheNameOfAFileDoesNotMatter) {
  const Image image = test_image(8, 5);
  const std::string path = testing::TempDir() + "really_a_png.jpg";
  write_png(path, image);
  EXPECT_EQ(read_image(path).rgb, image.rgb);
}

TEST(Read, GrayIsReplicatedAndInvertedInkBecomesLight) {
  const Image gray = decoded(jpeg_of(16, 16, 1, std::vector<uint8_t>(256, 120)));
  for (const uint8_t value : gray.rgb) ASSERT_EQ(value, 120);
  // Stored 255 - ink: cyan ink 55, no magenta, yellow ink 255, black ink 51.
  std::vector<uint8_t> stored;
  for (int i = 0; i < 256; ++i) stored.insert(stored.end(), {200, 255, 0, 204});
  const Image ink = decoded(jpeg_of(16, 16, 4, stored));
  EXPECT_EQ(ink.rgb[0], 160);  // 204 * 200 / 255
  EXPECT_EQ(ink.rgb[1], 204);
  EXPECT_EQ(ink.rgb[2], 0);
}

TEST(Read, OrientationIsAppliedUnlessUnwanted) {
  const std::string exif("Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 32);
  const std::string file = jpeg_of(20, 10, 3, test_image(20, 10).rgb, exif);
  const Image turned = decoded(file), stored = decoded(file, {.apply_orientation = false});
  EXPECT_EQ(turned.width, 10);
  EXPECT_EQ(turned.height, 20);
  EXPECT_EQ(stored.width, 20);
  EXPECT_EQ(turned.row(0)[9 * 3], stored.row(0)[0]);
}

TEST(Read, FormatsWithoutLossGiveTheirPixelsBack) {
  for (const auto& [width, height] : {std::pair(40, 30), std::pair(1, 1), std::pair(7, 33)}) {
    const Image image = test_image(width, height);
    EXPECT_EQ(decoded(test_files::tiff_of(image, COMPRESSION_NONE)).rgb, image.rgb);
    EXPECT_EQ(decoded(test_files::tiff_of(image, COMPRESSION_LZW)).rgb, image.rgb);
    EXPECT_EQ(decoded(test_files::avif_of(image)).rgb, image.rgb);
    EXPECT_EQ(decoded(test_files::bmp_of(image)).rgb, image.rgb);
    for (const bool interlaced : {false, true}) {
      const Image two = decoded(test_files::gif_of(image, interlaced));
      ASSERT_EQ(two.rgb.size(), image.rgb.size());
      for (size_t i = 0; i < two.rgb.size(); i += 3) ASSERT_EQ(two.rgb[i], image.rgb[i] > 127 ? 200 : 10);
    }
  }
  const Image turned = decoded(test_files::avif_of(test_image(7, 33), 1)), upright = test_image(7, 33);
  EXPECT_EQ(turned.width, 33);
  EXPECT_EQ(turned.row(6)[0], upright.row(0)[0]) << "to the left: the first pixel goes to the lower left";
}

TEST(Read, AFileThatEndsTooEarlyIsRefused) {
  for (const auto& [name, file] : samples()) {
    ASSERT_EQ(refusal(file), "") << name;
    for (size_t share = 0; share < 16; ++share)
      EXPECT_NE(refusal(file.substr(0, file.size() * share / 16)), "")
          << name << " cut at " << share << "/16";
  }
}

TEST(Read, DamageGivesPixelsOrAnInputErrorButNothingElse) {
  Rng rng(11);
  for (const auto& [name, file] : samples())
    for (int round = 0; round < 300; ++round) {
      std::string damaged = file;
      for (uint64_t hits = 1 + rng.below(4); hits > 0; --hits)
        damaged[rng.below(damaged.size())] = static_cast<char>(rng.bits());
      refusal(damaged, {.max_megapixels = 1});
    }
}

TEST(Read, OtherContentIsNamedInTheRefusal) {
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal("GIF89a......"), HasSubstr("GIF"));
  EXPECT_THAT(refusal("hello world"), HasSubstr("JPEG, PNG, WebP"));
  EXPECT_THAT(refusal(std::string("\0\0\0\x18"
                                  "ftypheic....mif1",
                                  20)),
              HasSubstr("HEIC"));
  EXPECT_THAT(refusal("\x1b[31mred"), HasSubstr("\\x1b"));
  EXPECT_THROW(read_image(testing::TempDir()), Error);
  EXPECT_THROW(read_image(testing::TempDir() + "not there"), Error);
}

TEST(Read, ImagesBeyondTheLimitAreRefusedByTheirHeader) {
  EXPECT_THAT(refusal(png_claiming(50000, 50000)), HasSubstr("2500.0"));
  EXPECT_THAT(refusal(png_claiming(2000000, 1)), HasSubstr("sides"));
  EXPECT_NE(refusal(png_claiming(0, 5)), "");
  for (const auto& [name, file] : samples()) {
    EXPECT_THAT(refusal(file, {.max_megapixels = 0.001}), HasSubstr("40 x 30")) << name;
    EXPECT_EQ(refusal(file, {.max_megapixels = 0.0012}), "") << name;
  }
}

TEST(Read, ATinyFileThatClaimsManyPixelsTakesNoMemoryForThem) {
  EXPECT_THAT(refusal(png_claiming(9000, 9000)), HasSubstr("expected compressed data for 9000 x 9000"));
  std::string jpeg = jpeg_of(40, 30, 3, test_image(40, 30).rgb);
  const size_t frame = jpeg.find("\xFF\xC0");  // then length, precision, height, width
  ASSERT_NE(frame, std::string::npos);
  for (const size_t side : {frame + 5, frame + 7}) {
    jpeg[side] = static_cast<char>(9000 >> 8);
    jpeg[side + 1] = static_cast<char>(9000 & 255);
  }
  EXPECT_THAT(refusal(jpeg), HasSubstr("expected compressed data for 9000 x 9000"));
}

TEST(Read, AFlatImageMayBeVerySmall) {
  const Image flat(3000, 2000);
  EXPECT_EQ(refusal(png_bytes(flat)), "");
  EXPECT_EQ(refusal(webp_of(flat, true)), "");
  for (const bool progressive : {false, true})
    EXPECT_EQ(refusal(jpeg_of(3000, 2000, 3, flat.rgb, "", progressive)), "");
}

TEST(Read, ThreadsDoNotDisturbEachOther) {
  const auto files = samples();
  std::vector<std::vector<uint8_t>> expected;
  for (const auto& sample : files) expected.push_back(decoded(sample.file).rgb);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round)
        for (size_t i = 0; i < files.size(); ++i) wrong += decoded(files[i].file).rgb != expected[i];
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Png, WritingReplacesAndNeverLeavesAPart) {
  const std::string folder = testing::TempDir() + "png_writing";
  std::filesystem::remove_all(folder);
  make_directories(folder);
  write_png(folder + "/a.png", test_image(5, 5));
  write_png(folder + "/a.png", test_image(6, 4));
  EXPECT_EQ(read_image(folder + "/a.png").width, 6);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_THROW(write_png(folder + "/missing/a.png", test_image(5, 5)), Error);
  EXPECT_THROW(png_bytes(Image()), Error);
}

}  // namespace
}  // namespace aha
