// The page's files, inside the program.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace aha {

struct Asset {
  std::string_view path, type;  // "/app.js", "text/javascript"
  std::string_view content;
};

std::span<const Asset> assets();

// The file at this path of the server; null where there is none.
const Asset* find_asset(std::string_view path);

}  // namespace aha
