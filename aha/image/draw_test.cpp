#include "aha/image/draw.h"

#include <gtest/gtest.h>

namespace aha {
namespace {

int darkness(const Image& image, int x, int y) {
  return 255 - image.row(y)[static_cast<size_t>(x) * 3];
}

TEST(Draw, ALineCoversItsWidth) {
  Image image = plain_image(40, 20);
  const Point points[] = {{5, 10}, {35, 10}};
  draw_line(image, points, {4, {0, 0, 0}});
  int sum = 0;
  for (int y = 0; y < 20; ++y) sum += darkness(image, 20, y);
  EXPECT_NEAR(sum / 255.0, 4, 0.02);
  EXPECT_EQ(darkness(image, 1, 10), 0);
}

TEST(Draw, WhereLinesMeetNothingIsPaintedTwice) {
  Image once = plain_image(40, 20), twice = once;
  const Segment line{{5, 10}, {35, 10}}, pieces[] = {{{5, 10}, {20, 10}}, {{20, 10}, {35, 10}}, line};
  draw_segments(once, {&line, 1}, {3, {0, 0, 0}, 0.5});
  draw_segments(twice, pieces, {3, {0, 0, 0}, 0.5});
  EXPECT_EQ(once.rgb, twice.rgb);
}

TEST(Draw, WhatFallsOutsideIsLeftOut) {
  Image image = plain_image(8, 6);
  const Segment line{{-50, -50}, {60, 60}}, far{{100, 100}, {120, 100}};
  draw_segments(image, {&line, 1}, {2, {0, 0, 0}});
  draw_segments(image, {&far, 1}, {2, {0, 0, 0}});
  EXPECT_GT(darkness(image, 3, 3), 200);
  paste(image, -3, 4, plain_image(5, 9, {7, 7, 7}));
  paste(image, 20, 20, plain_image(5, 9, {7, 7, 7}));
  EXPECT_EQ(image.row(5)[0], 7);
  EXPECT_EQ(image.row(5)[3], 7);
  EXPECT_NE(image.row(5)[6], 7);
  draw_frame(image, -2, -2, 20, 20, 3, {9, 9, 9});
  EXPECT_EQ(image.row(0)[0], 9);
  EXPECT_NE(image.row(2)[3 * 4], 9);
}

}  // namespace
}  // namespace aha
