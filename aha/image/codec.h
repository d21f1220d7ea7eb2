// What the codecs share: bytes in, pixels and an orientation out; sizes checked before memory is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "aha/image/read.h"

namespace aha {

using Bytes = std::span<const std::byte>;

struct Decoded {
  Image image;          // as stored, not yet turned
  int orientation = 1;  // EXIF's 1..8
};

// Input error for an empty image, one beyond the limit, or one with a side above 2^20.
void check_image_size(int64_t width, int64_t height, std::string_view name, const ReadOptions& options);

inline uint8_t byte_at(Bytes bytes, size_t at) {
  return std::to_integer<uint8_t>(bytes[at]);
}
inline const uint8_t* octets(Bytes bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}
inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace aha
