#include "aha/image/exif.h"

#include <gtest/gtest.h>

namespace aha {
namespace {

std::string block(bool big, int orientation, int type = 3, int count = 1) {
  const auto number = [&](uint32_t value, int size) {
    std::string text;
    for (int i = 0; i < size; ++i) text += static_cast<char>(value >> 8 * (big ? size - 1 - i : i) & 255);
    return text;
  };
  std::string value = number(static_cast<uint32_t>(orientation), type == 3 ? 2 : type == 4 ? 4 : 1);
  value.resize(4, '\0');
  return std::string(big ? "MM" : "II") + number(42, 2) + number(8, 4) + number(2, 2) +  //
         number(0x0100, 2) + number(3, 2) + number(1, 4) + number(7, 4) +                //
         number(0x0112, 2) + number(static_cast<uint32_t>(type), 2) +
         number(static_cast<uint32_t>(count), 4) + value + number(0, 4);
}

int orientation(const std::string& text) {
  return orientation_from_exif(std::as_bytes(std::span(text)));
}

TEST(Exif, OrientationIsReadInBothByteOrdersAndAllIntegerTypes) {
  for (int value = 1; value <= 8; ++value)
    for (const bool big : {false, true})
      for (const int type : {1, 3, 4}) {
        EXPECT_EQ(orientation(block(big, value, type)), value);
        EXPECT_EQ(orientation(std::string("Exif\0\0", 6) + block(big, value, type)), value);
      }
}

TEST(Exif, AnythingUnreadableIsUpright) {
  EXPECT_EQ(orientation(block(false, 0)), 1);
  EXPECT_EQ(orientation(block(false, 9)), 1);
  EXPECT_EQ(orientation(block(false, 6, 5)), 1);
  EXPECT_EQ(orientation(block(false, 6, 3, 2)), 1);
  EXPECT_EQ(orientation(""), 1);
  const std::string whole = block(true, 6);
  for (size_t size = 0; size + 4 < whole.size(); ++size)
    EXPECT_EQ(orientation(whole.substr(0, size)), 1) << size;
  std::string far = whole;
  far[4] = far[5] = '\xff';  // the directory lies beyond the end
  EXPECT_EQ(orientation(far), 1);
}

TEST(Exif, UprightMovesTheFirstPixelWhereTheTagSays) {
  // 1 2 3
  // 4 5 6
  Image image(3, 2);
  for (int i = 0; i < 6; ++i) image.rgb[i * 3] = static_cast<uint8_t>(i + 1);
  const auto reds = [&](int orientation) {
    const Image turned = upright(image, orientation);
    std::string text;
    for (int y = 0; y < turned.height; ++y, text += '/')
      for (int x = 0; x < turned.width; ++x) text += static_cast<char>('0' + turned.row(y)[x * 3]);
    return text;
  };
  EXPECT_EQ(reds(1), "123/456/");
  EXPECT_EQ(reds(2), "321/654/");
  EXPECT_EQ(reds(3), "654/321/");
  EXPECT_EQ(reds(4), "456/123/");
  EXPECT_EQ(reds(5), "14/25/36/");
  EXPECT_EQ(reds(6), "41/52/63/");
  EXPECT_EQ(reds(7), "63/52/41/");
  EXPECT_EQ(reds(8), "36/25/14/");
}

}  // namespace
}  // namespace aha
