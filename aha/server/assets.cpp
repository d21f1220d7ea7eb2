#include "aha/server/assets.h"

#include <algorithm>

namespace aha {

const Asset* find_asset(std::string_view path) {
  const auto all = assets();
  if (path == "/") path = "/index.html";
  const auto at = std::find_if(all.begin(), all.end(), [&](const Asset& one) { return one.path == path; });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace aha
