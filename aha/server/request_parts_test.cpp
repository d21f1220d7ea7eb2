#include "aha/server/request_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aha/base/error.h"

namespace aha {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Paths, PartsStandForNamesAndNothingElse) {
  EXPECT_EQ(match_path("/api/maps/{id}.npy", "/api/maps/0a1b.npy"), std::vector<std::string>{"0a1b"});
  EXPECT_EQ(match_path("/api/images/{id}/{reference}.png", "/api/images/x-1/blur.png"),
            (std::vector<std::string>{"x-1", "blur"}));
  EXPECT_TRUE(match_path("/api/models", "/api/models"));
  for (const char* path : {"/api/maps/.npy", "/api/maps/..npy", "/api/maps/a/b.npy", "/api/maps/a.npyx",
                           "/api/maps/a%2f.npy", "/api/maps/", "", "/api/maps/a.heat.png"})
    EXPECT_FALSE(match_path("/api/maps/{id}.npy", path)) << path;
}

struct Two {
  int a = 1;
  std::vector<int> list;
};
Fields fields(Two& two) {
  return Fields().add("a", two.a, "").range(0, 9).add("list", two.list, "");
}

TEST(Bodies, SetKnownOptionsOfTheRightTypeAndRange) {
  Two two;
  set_from_body(fields(two), R"({"a":3,"list":[1,2]})");
  EXPECT_EQ(two.a, 3);
  EXPECT_THAT(two.list, ElementsAre(1, 2));
  set_from_body(fields(two), "");
  EXPECT_EQ(two.a, 3);
  for (const char* body : {"[1]", "3", "{", R"({"b":1})", R"({"a":"3"})", R"({"a":10})", R"({"a":1.5})",
                           "{\"a\":3}x", R"({"list":[[[[[[1]]]]]]})", "\xff"})
    EXPECT_THROW(set_from_body(fields(two), body), Error) << body;
  EXPECT_THROW(set_from_body(fields(two), std::string(1 << 20, '[')), Error);
}

TEST(Masks, RunsAlternateAndCoverEveryPixel) {
  EXPECT_THAT(keep_from_runs(std::vector{2, 1, 1}, 4), ElementsAre(1, 1, 0, 1));
  EXPECT_THAT(keep_from_runs(std::vector{0, 4}, 4), ElementsAre(0, 0, 0, 0));
  for (const auto& runs : {std::vector{3}, {5}, {2, -1, 3}, {INT32_MAX, INT32_MAX}, {}})
    EXPECT_THROW(keep_from_runs(runs, 4), Error);
}

TEST(Names, AreOneLineWithoutFolders) {
  EXPECT_EQ(safe_name("C:\\photos\\cat.jpg"), "cat.jpg");
  EXPECT_EQ(safe_name("../../etc/passwd"), "passwd");
  EXPECT_EQ(safe_name("a\nb\r\x01.png"), "ab.png");
  EXPECT_EQ(safe_name("caf\xc3\xa9\xff.png"), "caf\xc3\xa9.png");
  EXPECT_EQ(safe_name(std::string(300, 'x')).size(), 100u);
  for (const char* name : {"", "/", "..", "a/"}) EXPECT_EQ(safe_name(name), "image");
}

TEST(Secrets, AreComparedWhole) {
  EXPECT_TRUE(same_secret("correct horse", "correct horse"));
  for (const char* wrong :
       {"", "correct hors", "correct horsecorrect horse", "Correct horse", "correct horsf"})
    EXPECT_FALSE(same_secret(wrong, "correct horse")) << wrong;
  EXPECT_EQ(cookie_value("a=1; aha_token=x.y; b=2", "aha_token"), "x.y");
  EXPECT_EQ(cookie_value("xaha_token=1", "aha_token"), "");
  EXPECT_EQ(bearer_token("Bearer abc"), "abc");
  EXPECT_EQ(bearer_token("Basic abc"), "");
}

TEST(Callers, AreThisMachineAndThisPage) {
  for (const char* host : {"localhost:8080", "127.0.0.1", "[::1]:8080", "LOCALHOST", "127.1.2.3:1"})
    EXPECT_EQ(why_refused({host, "", ""}, false), "") << host;
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "",
                           "localhost:x", "[::1", "localhost:8080:1", "127.0.0.1x"})
    EXPECT_NE(why_refused({host, "", ""}, false), "") << host;
  EXPECT_EQ(why_refused({"lab-pc:8080", "http://lab-pc:8080", "same-origin"}, true), "");
  EXPECT_EQ(why_refused({"localhost:8080", "http://localhost:8080", "same-origin"}, false), "");
  EXPECT_THAT(why_refused({"localhost:8080", "http://localhost:9090", ""}, false), HasSubstr("origin"));
  EXPECT_THAT(why_refused({"localhost:8080", "http://evil.example", ""}, false), HasSubstr("origin"));
  EXPECT_THAT(why_refused({"localhost:8080", "null", ""}, false), HasSubstr("origin"));
  EXPECT_THAT(why_refused({"localhost:8080", "", "cross-site"}, false), HasSubstr("another site"));
}

}  // namespace
}  // namespace aha
