#include "aha/image/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

namespace aha {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Image white(int width, int height) {
  Image image(width, height);
  std::fill(image.rgb.begin(), image.rgb.end(), uint8_t{255});
  return image;
}

struct Ink {
  int left, right, top, bottom;  // of the pixels that are not white; right and bottom behind the last one
  int pixels = 0, gray = 0;
};

Ink ink_of(const Image& image) {
  Ink ink{image.width, 0, image.height, 0};
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const uint8_t value = image.row(y)[x * 3];
      if (value == 255) continue;
      ++ink.pixels;
      ink.gray += value > 0;
      ink.left = std::min(ink.left, x), ink.right = std::max(ink.right, x + 1);
      ink.top = std::min(ink.top, y), ink.bottom = std::max(ink.bottom, y + 1);
    }
  return ink;
}

Image drawn(std::string_view text, const TextStyle& style) {
  Image image = white(600, 100);
  draw_text(image, 20, 20, text, style);
  return image;
}

TEST(Text, GrowsWithTheTextTheSizeAndTheWeight) {
  const TextStyle style;
  EXPECT_EQ(text_width("", style), 0);
  int before = 0;
  for (const char* text : {"a", "ab", "abc", "abc d", "abc d…"}) {
    EXPECT_GT(text_width(text, style), before) << text;
    before = text_width(text, style);
  }
  EXPECT_NEAR(text_width("gradient", {26}), 2 * text_width("gradient", {13}), 2);
  EXPECT_GT(text_width("gradient", {13, {}, true}), text_width("gradient", {13}));
  EXPECT_GT(line_height({26}), line_height({13}));
  EXPECT_GE(line_height({13}), 13);
}

TEST(Text, PairsAreKerned) {
  const TextStyle style{64};
  EXPECT_LT(text_width("AVAVAV", style), 3 * (text_width("A", style) + text_width("V", style)) - 6);
}

TEST(Text, InkIsInsideTheBoxAndAntialiased) {
  for (const char* text : {"gradient", "jÀy|", "Ấ", "…", "W", "ffj"})
    for (const double size : {9.0, 13.5, 24.0})
      for (const bool bold : {false, true}) {
        const TextStyle style{size, {0, 0, 0}, bold};
        const Ink ink = ink_of(drawn(text, style));
        EXPECT_GT(ink.pixels, 0) << text;
        EXPECT_GT(ink.gray, 0) << text;
        EXPECT_GE(ink.left, 20) << text << size;
        EXPECT_LE(ink.right, 20 + text_width(text, style)) << text << size;
        EXPECT_GE(ink.top, 20) << text << size;
        EXPECT_LE(ink.bottom, 20 + line_height(style)) << text << size;
      }
}

TEST(Text, AlignmentMovesTheBox) {
  const TextStyle style;
  const int width = text_width("rise", style);
  const auto at = [&](Align align) {
    Image image = white(200, 40);
    draw_text(image, 100, 5, "rise", style, align);
    return ink_of(image).left;
  };
  EXPECT_EQ(at(Align::kLeft) - at(Align::kRight), width);
  EXPECT_EQ(at(Align::kLeft) - at(Align::kCenter), width / 2);
}

TEST(Text, TakesItsColorAndLeavesTheRestAlone) {
  Image image = white(100, 40);
  draw_text(image, 5, 5, "█", {20, {200, 10, 60}});
  const uint8_t* inside = image.row(17) + 11 * 3;
  EXPECT_EQ(inside[0], 200);
  EXPECT_EQ(inside[1], 10);
  EXPECT_EQ(inside[2], 60);
  EXPECT_EQ(image.row(0)[0], 255);
}

TEST(Text, ReadsUtf8AndReplacesWhatIsNone) {
  const TextStyle style{20};
  EXPECT_NE(drawn("é", style).rgb, drawn("e", style).rgb);
  const auto replacement = drawn("\uFFFD", style).rgb;
  for (const std::string_view bad :
       {"\xFF", "\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x01", "\n", "\x7F", "\xC3"}) {
    const std::string text(bad);
    if (bad.size() == 1) {
      EXPECT_EQ(drawn(text, style).rgb, replacement) << int(uint8_t(bad[0]));
    }
    EXPECT_EQ(drawn(text + "x", style).rgb.size(), replacement.size());
    EXPECT_GT(text_width(text, style), 0);
  }
  const std::string zero("a\0b", 3);
  EXPECT_EQ(drawn(zero, style).rgb, drawn("a\uFFFDb", style).rgb);
}

TEST(Text, ACharacterThatTheFontLacksIsABox) {
  EXPECT_GT(ink_of(drawn("\U0001F9FF", {20})).pixels, 0);
  EXPECT_EQ(drawn("\U0001F9FF", {20}).rgb, drawn("\U0001FA00", {20}).rgb);
}

TEST(Text, OutsideTheImageNothingIsTouched) {
  Image image = white(3, 3);
  for (const int place :
       {-1000000, -50, 3, 1000000, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()})
    for (const Align align : {Align::kLeft, Align::kCenter, Align::kRight})
      draw_text(image, place, place, "text \x01\xff", {13, {1, 2, 3}}, align);
  EXPECT_EQ(image.rgb, white(3, 3).rgb);
  draw_text(image, 0, -5, "M", {13});
  EXPECT_EQ(image.rgb.size(), 27u);
}

TEST(Text, HostileTextAndSizesAreBounded) {
  const std::string endless(10'000'000, 'm');
  EXPECT_EQ(text_width(endless, {13}), text_width(std::string(4096, 'm'), {13}));
  Image image = white(50, 20);
  draw_text(image, 0, 0, endless, {13});
  EXPECT_LT(shortened(endless, 200, {13}).size(), 100u);
  EXPECT_EQ(text_width("m", {std::nan("")}), text_width("m", {4}));
  EXPECT_EQ(text_width("m", {-3}), text_width("m", {4}));
  EXPECT_EQ(text_width("m", {1e30}), text_width("m", {512}));
}

TEST(Text, ShortenedKeepsBothEndsAndFits) {
  const TextStyle style;
  EXPECT_EQ(shortened("rise", 100, style), "rise");
  const std::string spec = "ig:steps=200:baseline=black:signed=true:blur=4";
  for (const int width : {40, 80, 160}) {
    const std::string text = shortened(spec, width, style);
    EXPECT_LE(text_width(text, style), width);
    EXPECT_GT(text_width(text, style), width / 2);
    EXPECT_THAT(text, StartsWith("i"));
    EXPECT_THAT(text, HasSubstr("…"));
    EXPECT_EQ(text.back(), '4');
  }
  EXPECT_EQ(shortened(spec, 0, style), "…");
  const std::string accents = shortened("éééééééééé", 40, style);
  EXPECT_EQ(accents.find("\xC3…"), std::string::npos) << "whole characters";
}

TEST(Text, SeveralThreadsDrawWhatOneDraws) {
  std::vector<Image> images(8);
  std::vector<std::thread> threads;
  const auto style_of = [](size_t i) { return TextStyle{10.0 + static_cast<double>(i), {}, i % 2 == 1}; };
  for (size_t i = 0; i < images.size(); ++i)
    threads.emplace_back([&, i] {
      for (int again = 0; again < 20; ++again) images[i] = drawn("several threads", style_of(i));
    });
  for (auto& thread : threads) thread.join();
  for (size_t i = 0; i < images.size(); ++i)
    EXPECT_EQ(images[i].rgb, drawn("several threads", style_of(i)).rgb) << i;
}

}  // namespace
}  // namespace aha
