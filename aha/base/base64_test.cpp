#include "aha/base/base64.h"

#include <gtest/gtest.h>

namespace aha {
namespace {

std::string of(const std::string& text) {
  return base64(std::as_bytes(std::span(text)));
}

TEST(Base64, GivesTheExamplesOfTheStandard) {
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("f"), "Zg==");
  EXPECT_EQ(of("fo"), "Zm8=");
  EXPECT_EQ(of("foo"), "Zm9v");
  EXPECT_EQ(of("foob"), "Zm9vYg==");
  EXPECT_EQ(of("fooba"), "Zm9vYmE=");
  EXPECT_EQ(of("foobar"), "Zm9vYmFy");
  EXPECT_EQ(of("\xff\xfe\xfd"), "//79");
}

}  // namespace
}  // namespace aha
