// Holds the layer table of ARCHITECTURE.md against the tree: reads every #include and every aha_module() of
// CMakeLists.txt.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
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
  std::string file;    // aha/kernels/gemm/gemm.cpp
  std::string module;  // kernels: the first folder below aha/, however deep the file is
  std::string path;    // as written, without the quotes
  std::string of;      // the module it names; empty = none of ours
  bool is_test;        // *_test.cpp and what only those include
};

std::vector<Include> read_includes() {
  static const std::regex pattern(R"re(^\s*#\s*include\s*["<]((aha/([a-z0-9_]+)/)?[^">]+)[">])re");
  std::vector<Include> out;
  for (const auto& entry : fs::recursive_directory_iterator("aha")) {
    const auto extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp" && extension != ".inl") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::smatch match;
      if (std::regex_search(line, match, pattern))
        out.push_back({entry.path().string(), std::next(entry.path().begin())->string(), match[1], match[3],
                       entry.path().stem().string().ends_with("_test")});
    }
  }
  return out;
}

// module -> what aha_module(module ... DEPS ...) names
std::map<std::string, std::set<std::string>> read_cmake_dependencies() {
  std::ifstream in("CMakeLists.txt");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  static const std::regex call(R"re((^|\n)aha_module\((\w+)([^)]*)\))re");
  std::map<std::string, std::set<std::string>> out;
  for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) {
    std::set<std::string>& dependencies = out[(*it)[2]];
    std::istringstream words((*it)[3]);
    bool inside = false;
    for (std::string word; words >> word;) {
      if (word == "TORCH" || word == "LOOPS" || word == "LIBS" || word == "DEPS")
        inside = word == "DEPS";
      else if (inside)
        dependencies.insert(word);
    }
  }
  return out;
}

std::string joined(const std::set<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST(Layers, TheTableAndTheFoldersNameTheSameModules) {
  const auto layer = read_table();
  ASSERT_GE(layer.size(), 15u);
  for (const auto& entry : fs::directory_iterator("aha")) {
    if (!entry.is_directory() || entry.path().filename() == "testing") continue;
    EXPECT_TRUE(layer.contains(entry.path().filename()))
        << entry.path() << " is not in ARCHITECTURE.md's table";
  }
  for (const auto& [module, row] : layer)
    EXPECT_TRUE(fs::is_directory("aha/" + module))
        << "row " << row << " names " << module << ", which does not exist";
}

TEST(Layers, NoIncludeClimbs) {
  const auto layer = read_table();
  const auto includes = read_includes();
  ASSERT_GT(includes.size(), 20u);
  for (const auto& i : includes) {
    if (i.module == "testing" || i.of.empty() || i.of == i.module) continue;
    if (i.of == "testing") {
      EXPECT_TRUE(i.is_test) << i.file << " is no test, yet includes " << i.path;
      continue;
    }
    ASSERT_TRUE(layer.contains(i.module)) << i.file;
    ASSERT_TRUE(layer.contains(i.of)) << i.file << " includes " << i.path;
    EXPECT_LT(layer.at(i.of), layer.at(i.module))
        << i.file << " (row " << layer.at(i.module) << ") includes " << i.path;
  }
}

TEST(Layers, AnIncludeOfOursIsThePathOfAFile) {
  for (const auto& i : read_includes()) {
    if (i.of.empty()) continue;
    EXPECT_TRUE(fs::is_regular_file(i.path)) << i.file << " includes " << i.path;
  }
}

// Below the row of `tensor` no file includes a header of libtorch. With NoIncludeClimbs, none gets one
// indirectly.
TEST(Layers, LibtorchEntersInTensorAndNotBelow) {
  static const std::regex torch("^(torch|ATen|c10|caffe2)/|^aha/tensor/");
  const auto layer = read_table();
  int below = 0, above = 0;
  for (const auto& i : read_includes()) {
    if (i.module == "testing") continue;
    const bool is_torch = std::regex_search(i.path, torch);
    if (layer.at(i.module) < layer.at("tensor")) {
      ++below;
      EXPECT_FALSE(is_torch) << i.file << " includes " << i.path;
    } else {
      above += is_torch;
    }
  }
  EXPECT_GT(below, 100);
  EXPECT_GT(above, 10);  // the pattern does find them where they are
}

// DEPS of aha_module(m) are the modules that files of m, tests among them, include: no more and no fewer.
// What those depend on in turn, CMake adds by itself. (cli is no aha_module: its folder has a
// CMakeLists.txt.)
TEST(Layers, CMakeDependenciesAreTheIncludes) {
  const auto cmake = read_cmake_dependencies();
  std::map<std::string, std::set<std::string>> includes;
  for (const auto& i : read_includes())
    if (!i.of.empty() && i.of != i.module && i.of != "testing") includes[i.module].insert(i.of);
  for (const auto& [module, row] : read_table()) {
    if (module == "cli") continue;
    ASSERT_TRUE(cmake.contains(module)) << "CMakeLists.txt has no aha_module(" << module << " ...)";
    EXPECT_EQ(joined(cmake.at(module)), joined(includes[module]))
        << "expected in CMakeLists.txt: aha_module(" << module << " ... DEPS " << joined(includes[module])
        << ")";
  }
}

}  // namespace
