// A strict reader of zip archives: the container of PyTorch's and numpy's files.
//
// Members are views into the archive. What those two never write is refused, because it is how archives lie:
// encrypted members, compressed ones unless they are asked for, names that occur twice, are absolute or climb
// with "..", members that overlap or leave the file, a local header that contradicts the directory, bytes
// between the directory and the end. zip64 is read wherever it is used. Nothing is inflated here, so a small
// file stays small.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace aha {

enum class ZipMethod : uint16_t { kStored = 0, kDeflated = 8 };

struct ZipMember {
  std::span<const std::byte> bytes;  // as they lie in the archive
  uint32_t crc32 = 0;                // of the content, as the directory states it
  uint64_t size = 0;  // of the content, as the directory states it; bytes.size() where it is stored
  ZipMethod method = ZipMethod::kStored;
};

struct ZipArchive {
  std::map<std::string, ZipMember, std::less<>> members;
  std::string source;  // the file, for messages

  bool has(std::string_view name) const { return members.find(name) != members.end(); }
};

// `most` = kDeflated lets compressed members pass too.
ZipArchive zip_from_bytes(std::span<const std::byte> bytes, std::string_view name,
                          ZipMethod most = ZipMethod::kStored);

// Compares every stored member with its CRC-32, on all threads; an input error names the first damaged one.
// Cost: one pass over the file.
void check_crc(const ZipArchive& archive);

}  // namespace aha
