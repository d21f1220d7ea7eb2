#include "aha/data/places.h"

#include <cstdlib>

#include "aha/base/error.h"
#include "aha/base/shipped.h"

namespace aha {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

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
  return shipped({"AHA_DATA", "data", "data", "cifar10_sample.png"});
}

}  // namespace aha
