// The names under which the results of images are written.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace aha {

// "STEM" of each image file, with -2, -3, ... where several share one: a result never replaces another.
inline std::vector<std::string> file_stems(const std::vector<std::string>& images) {
  std::vector<std::string> stems;
  std::set<std::string> taken;
  for (const auto& image : images) {
    const std::string stem = image == "-" ? "stdin" : std::filesystem::path(image).stem().string();
    std::string name = stem;
    for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}-{}", stem, n);
    stems.push_back(name);
  }
  return stems;
}

}  // namespace aha
