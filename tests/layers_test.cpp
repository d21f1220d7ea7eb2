// Holds the layer table of ARCHITECTURE.md: reads every #include "aha/..." and fails on one that climbs.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

namespace {

namespace fs = std::filesystem;

std::map<std::string, int> read_table() {
  std::ifstream in("ARCHITECTURE.md");
  std::map<std::string, int> layer;
  std::string line;
  bool inside = false;
  while (std::getline(in, line)) {
    if (line == "```layers") {
      inside = true;
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      std::istringstream words(line.substr(0, 42));  // the modules stand in the first 42 columns
      int row = 0;
      words >> row;
      for (std::string module; words >> module;) layer[module] = row;
    }
  }
  return layer;
}

struct Include {
  std::string file, module, includes;
  bool is_test;
};

std::vector<Include> read_includes() {
  static const std::regex pattern("^\\s*#\\s*include\\s*\"aha/([a-z]+)/");
  std::vector<Include> out;
  for (const auto& entry : fs::recursive_directory_iterator("aha")) {
    const auto extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp" && extension != ".inl") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (std::regex_search(line, match, pattern))
        out.push_back(
            {entry.path().string(),
             entry.path().begin() != entry.path().end() ? std::next(entry.path().begin())->string() : "",
             match[1], entry.path().stem().string().ends_with("_test")});
    }
  }
  return out;
}

TEST(Layers, TheTableNamesEveryFolder) {
  const auto layer = read_table();
  ASSERT_GE(layer.size(), 15u);
  for (const auto& entry : fs::directory_iterator("aha")) {
    if (!entry.is_directory() || entry.path().filename() == "testing") continue;
    EXPECT_TRUE(layer.contains(entry.path().filename()))
        << entry.path() << " is not in ARCHITECTURE.md's table";
  }
}

TEST(Layers, NoIncludeClimbs) {
  const auto layer = read_table();
  const auto includes = read_includes();
  ASSERT_GT(includes.size(), 20u);
  for (const auto& i : includes) {
    if (i.module == "testing" || i.includes == i.module) continue;
    if (i.includes == "testing") {
      EXPECT_TRUE(i.is_test) << i.file << " is no test, yet includes aha/testing";
      continue;
    }
    ASSERT_TRUE(layer.contains(i.module)) << i.file;
    ASSERT_TRUE(layer.contains(i.includes)) << i.file << " includes aha/" << i.includes;
    EXPECT_LT(layer.at(i.includes), layer.at(i.module))
        << i.file << " (row " << layer.at(i.module) << ") includes aha/" << i.includes;
  }
}

}  // namespace
