#include "aha/data/places.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "aha/base/error.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

constexpr const char* kWitness = "cifar10_sample.png";  // a folder without it is some other data/

}  // namespace

std::string cache_folder() {
  if (const std::string own = variable("AHA_CACHE"); !own.empty()) return own;
  if (const std::string base = variable("XDG_CACHE_HOME"); !base.empty()) return base + "/aha";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/aha";
  throw input_error(
      "no folder for fetched data: expected AHA_CACHE, XDG_CACHE_HOME or HOME in the environment, found "
      "none");
}

std::string bundled_data_folder() {
  std::vector<fs::path> places;
  if (const std::string own = variable("AHA_DATA"); !own.empty()) {
    places.push_back(own);
  } else {
    std::error_code code;
    const fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path();
    places.push_back(folder.parent_path() / "share/aha/data");
    for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) places.push_back(at / "data");
  }
  std::vector<std::string> tried;
  for (const auto& place : places) {
    std::error_code code;
    if (fs::exists(place / kWitness, code)) return place.string();
    tried.push_back(place.string());
  }
  throw input_error(
      "the data that ship with aha ({}) are not here; looked in {}; AHA_DATA names their folder", kWitness,
      list_some(tried));
}

}  // namespace aha
