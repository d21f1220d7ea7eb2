#include "aha/train/random_view.h"

#include <gtest/gtest.h>
#include "aha/tensor/torch.h"

#include <set>

namespace aha {
namespace {

// Red says the column, green the row.
Image ramp(int width, int height) {
  Image image(width, height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      image.row(y)[3 * x] = static_cast<uint8_t>(x);
      image.row(y)[3 * x + 1] = static_cast<uint8_t>(y);
    }
  return image;
}

InputSpec input_of(int size) {
  InputSpec input;
  input.size = size;
  return input;
}

TEST(RandomView, IsASquareWithinTheImage) {
  constexpr int kWidth = 60, kHeight = 40, kSize = 32;
  double least = 1, most = 0;
  std::set<int> lefts, tops;
  for (uint64_t i = 0; i < 300; ++i) {
    const Tensor view =
        random_view(ramp(kWidth, kHeight), input_of(kSize), 0.25, Rng(1, i)) * 255;  // (3, 32, 32)
    // On a ramp the step between columns is the upsampling; the filter flattens it at the borders.
    const double step = (view[0][16][24] - view[0][16][8]).item<double>() / 16,
                 down = (view[1][24][16] - view[1][8][16]).item<double>() / 16;
    EXPECT_NEAR(step, down, 0.1);
    const double side = step * kSize, left = view[0][16][16].item<double>() - 16.5 * step + 0.5,
                 top = view[1][16][16].item<double>() - 16.5 * step + 0.5;
    EXPECT_GT(left, -1.1);
    EXPECT_GT(top, -1.1);
    EXPECT_LT(left + side, kWidth + 1.1);
    EXPECT_LT(top + side, kHeight + 1.1);
    lefts.insert(static_cast<int>(std::lround(left)));
    tops.insert(static_cast<int>(std::lround(top)));
    const double area = side * side / (kHeight * kHeight);
    least = std::min(least, area);
    most = std::max(most, area);
  }
  EXPECT_NEAR(least, 0.25, 0.05);
  EXPECT_NEAR(most, 1, 0.1);
  EXPECT_GT(lefts.size(), 25u);
  EXPECT_GT(tops.size(), 12u);
}

TEST(RandomView, OfTheWholeAreaIsTheLargestSquare) {
  const Image image = ramp(32, 32);
  EXPECT_TRUE(torch::equal(random_view(image, input_of(32), 1, Rng(7)), tensor_from_image(image)));
}

TEST(RandomView, DependsOnItsRandomNumbersAlone) {
  const Image image = ramp(50, 50);
  const auto view = [&](uint64_t stream) { return random_view(image, input_of(32), 0.3, Rng(7, stream)); };
  EXPECT_TRUE(torch::equal(view(1), view(1)));
  EXPECT_FALSE(torch::equal(view(1), view(2)));
}

TEST(RandomView, OnePixelIsEnough) {
  EXPECT_EQ(random_view(ramp(1, 5), input_of(8), 0.1, Rng(1)).sizes(), (std::vector<int64_t>{3, 8, 8}));
}

}  // namespace
}  // namespace aha
