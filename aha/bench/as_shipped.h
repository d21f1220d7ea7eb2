// This program once more, with the numeric libraries as the system ships them: the environment that
// base/startup.h has set is taken back and AHA_TUNING=off keeps it so.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace aha {

// The JSON document that the program prints when it is called with these arguments; nothing where it fails
// (untuned libraries die of illegal instructions on some virtual machines).
std::optional<nlohmann::json> json_as_shipped(const std::vector<std::string>& arguments);

}  // namespace aha
