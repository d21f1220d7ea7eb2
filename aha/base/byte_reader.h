// Reads little-endian numbers and byte runs from the front of a span; running out is an input error that says
// where.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "aha/base/error.h"

namespace aha {

class ByteReader {
 public:
  // `what` names the thing that is read ("model.pth: the pickle"); it must outlive the reader.
  ByteReader(std::span<const std::byte> bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  std::span<const std::byte> take(uint64_t count) {
    if (count > left())
      throw input_error("{} is cut off at byte {}: expected {} more bytes, found {}", what_, position_, count,
                        left());
    const auto out = bytes_.subspan(position_, count);
    position_ += count;
    return out;
  }

  std::string_view text(uint64_t count) {
    const auto run = take(count);
    return {reinterpret_cast<const char*>(run.data()), run.size()};
  }

  // Up to the next newline, which is eaten and not returned.
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + position_, left());
    const size_t end = rest.find('\n');
    if (end == rest.npos)
      throw input_error("{} is cut off at byte {}: a line does not end", what_, position_);
    position_ += end + 1;
    return rest.substr(0, end);
  }

  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, take(sizeof(Number)).data(), sizeof(Number));
    return value;
  }
  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }

 private:
  std::span<const std::byte> bytes_;
  std::string_view what_;
  size_t position_ = 0;
};

}  // namespace aha
