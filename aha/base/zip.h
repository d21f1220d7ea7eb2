// A strict reader of zip archives: the container of PyTorch's files.
//
// Members are views into the archive. What PyTorch never writes is refused, because it is how archives lie:
// encrypted and compressed members, names that occur twice, are absolute or climb with "..", members that
// overlap or leave the file, a local header that contradicts the directory, bytes between the directory and
// the end. zip64 is read wherever it is used. Nothing is inflated, so a small file stays small.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace aha {

struct ZipMember {
  std::span<const std::byte> bytes;
  uint32_t crc32 = 0;  // as the directory states it
};

struct ZipArchive {
  std::map<std::string, ZipMember, std::less<>> members;
  std::string source;  // the file, for messages

  bool has(std::string_view name) const { return members.find(name) != members.end(); }
};

ZipArchive zip_from_bytes(std::span<const std::byte> bytes, std::string_view name);

// Compares every member with its CRC-32, on all threads; an input error names the first damaged one.
// Cost: one pass over the file.
void check_crc(const ZipArchive& archive);

}  // namespace aha
