#include "aha/base/toml.h"

#include <toml++/toml.h>

#include <sstream>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {

nlohmann::json json_from_toml(const std::string& path, uint64_t most_bytes) {
  const std::string text = read_file(path, most_bytes);
  try {
    std::ostringstream out;
    out << toml::json_formatter{toml::parse(text, path)};
    return nlohmann::json::parse(out.str());
  } catch (const toml::parse_error& error) {
    throw input_error("{}:{}: not TOML: {}", path, error.source().begin.line,
                      std::string(error.description()));
  }
}

}  // namespace aha
