#include "aha/base/shipped.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "aha/base/error.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

// The file that holds this code: the program, or a library that somebody else's program has loaded.
fs::path own_file() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_shipped), &info) == 0 || !info.dli_fname) return {};
  std::error_code code;
  return fs::canonical(info.dli_fname, code);
}

std::string search(const ShippedFolder& folder, std::vector<std::string>& tried) {
  if (const char* set = std::getenv(folder.variable); set && *set) return set;
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code).parent_path();
  std::vector<fs::path> places = {program.parent_path() / "share/aha" / folder.installed};
  const fs::path library = own_file().parent_path();
  if (library != program) places.push_back(library.parent_path() / "share/aha" / folder.installed);
  for (fs::path at = program; at.has_relative_path(); at = at.parent_path())
    places.push_back(at / folder.in_tree);
  if (library != program)
    for (fs::path at = library; at.has_relative_path(); at = at.parent_path())
      places.push_back(at / folder.in_tree);
  places.push_back(fs::path(__FILE__).parent_path().parent_path().parent_path() / folder.in_tree);
  for (const auto& place : places) {
    if (fs::exists(place / folder.witness, code)) return place.string();
    tried.push_back(place.string());
  }
  return "";
}

}  // namespace

std::string find_shipped(const ShippedFolder& folder) {
  std::vector<std::string> tried;
  return search(folder, tried);
}

std::string shipped(const ShippedFolder& folder) {
  std::vector<std::string> tried;
  std::string found = search(folder, tried);
  if (found.empty())
    throw input_error("the {} that ship with aha (with {}) are not here; looked in {}; {} names their folder",
                      folder.installed, folder.witness, list_some(tried), folder.variable);
  return found;
}

}  // namespace aha
