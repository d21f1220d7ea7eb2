// Base64 (RFC 4648), to put pictures into HTML.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace aha {

std::string base64(std::span<const std::byte> bytes);

}  // namespace aha
