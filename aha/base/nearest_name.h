// The name that somebody may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace aha {

// The one with the fewest letters to change; empty where more than a third would have to be.
std::string nearest_name(std::string_view found, std::span<const std::string> available);

}  // namespace aha
