#include "aha/image/webp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "aha/base/error.h"
#include "aha/image/png.h"

namespace aha {
namespace {

TEST(Webp, APhotoIsMuchSmallerThanItsPngAndLooksTheSame) {
  Image image(224, 224);
  for (int y = 0; y < 224; ++y)
    for (int x = 0; x < 224; ++x)
      for (int c = 0; c < 3; ++c)
        image.row(y)[3 * x + c] =
            static_cast<uint8_t>(128 + 60 * std::sin(x / 9.0 + c) + 50 * std::cos(y / 7.0) + (x * y) % 7);
  const std::string bytes = webp_bytes(image);
  EXPECT_LT(bytes.size() * 4, png_bytes(image).size());
  const Image back = decode_webp(std::as_bytes(std::span(bytes)), "again", {}).image;
  ASSERT_EQ(back.rgb.size(), image.rgb.size());
  double squares = 0;
  for (size_t i = 0; i < image.rgb.size(); ++i) squares += std::pow(image.rgb[i] - back.rgb[i], 2);
  EXPECT_LT(std::sqrt(squares / static_cast<double>(image.rgb.size())), 8);
}

TEST(Webp, RefusesAnImageWithoutPixels) {
  EXPECT_THROW(webp_bytes(Image()), Error);
}

}  // namespace
}  // namespace aha
