#include "aha/app/file_stems.h"

#include <filesystem>
#include <set>

#include <fmt/format.h>

namespace aha {

std::vector<std::string> file_stems(const std::vector<std::string>& images) {
  std::vector<std::string> stems;
  std::set<std::string> taken;
  for (const auto& image : images) {
    const std::string stem = std::filesystem::path(image).stem().string();
    std::string name = stem;
    for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}-{}", stem, n);
    stems.push_back(name);
  }
  return stems;
}

}  // namespace aha
