#include "aha/base/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/testing/checks.h"

namespace aha {
namespace {

struct TomlFile {
  explicit TomlFile(const std::string& text)
      : path(std::filesystem::temp_directory_path() /
             ("aha_toml_" + std::to_string(::getpid()) + "_" + std::to_string(next++) + ".toml")) {
    write_file_atomically(path, text);
  }
  ~TomlFile() { std::filesystem::remove(path); }
  static inline int next = 0;
  std::string path;
};

std::string refusal_of(const std::string& path, uint64_t most_bytes = 1 << 24) {
  return checks::message_of([&] { json_from_toml(path, most_bytes); });
}

TEST(Toml, EveryKindOfValueKeepsItsTypeAndItsExactNumber) {
  const TomlFile file(
      "text = 'a \"b\" \\n'\nwhole = 9007199254740993\nreal = 0.1\nyes = true\nlist = [1, 2]\n"
      "day = 2024-02-29\n[table]\ninner = 1e-300\n");
  const auto json = json_from_toml(file.path);
  EXPECT_EQ(json["text"], "a \"b\" \\n");
  EXPECT_EQ(json["whole"].get<int64_t>(), 9007199254740993);
  EXPECT_EQ(json["real"].get<double>(), 0.1);
  EXPECT_EQ(json["yes"], true);
  EXPECT_EQ(json["list"], nlohmann::json({1, 2}));
  EXPECT_EQ(json["day"], "2024-02-29");
  EXPECT_EQ(json["table"]["inner"].get<double>(), 1e-300);
}

TEST(Toml, AWholeRealStaysAReal) {
  EXPECT_TRUE(json_from_toml(TomlFile("x = 3.0\n").path)["x"].is_number_float());
}

TEST(Toml, AnEmptyFileIsAnEmptyObject) {
  EXPECT_EQ(json_from_toml(TomlFile("# nothing\n").path), nlohmann::json::object());
}

TEST(Toml, ARefusalNamesFileAndLine) {
  const TomlFile file("a = 1\nb = = 2\n");
  EXPECT_THAT(refusal_of(file.path), testing::HasSubstr(file.path + ":2: not TOML"));
}

// JSON has no such numbers; whoever expects a number refuses the text.
TEST(Toml, InfinityAndNotANumberBecomeText) {
  const auto json = json_from_toml(TomlFile("x = inf\ny = nan\n").path);
  EXPECT_TRUE(json["x"].is_string());
  EXPECT_TRUE(json["y"].is_string());
}

TEST(Toml, AMissingAndALargerFileAreNamed) {
  EXPECT_THAT(refusal_of("/nonexistent/x.toml"), testing::HasSubstr("/nonexistent/x.toml"));
  const TomlFile file("a = 1\n");
  EXPECT_THAT(refusal_of(file.path, 3), testing::HasSubstr(file.path));
}

}  // namespace
}  // namespace aha
