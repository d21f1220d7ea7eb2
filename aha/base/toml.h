// TOML files as JSON, which is what options are set from (options.h).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace aha {

// Dates and times become text. A missing or larger file is an input error that names it, text that is not
// TOML one that names the line.
nlohmann::json json_from_toml(const std::string& path, uint64_t most_bytes = 1 << 24);

}  // namespace aha
