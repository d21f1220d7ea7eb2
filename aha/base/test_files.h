// Zip archives and numpy files made by hand, byte by byte, so that tests can make them wrong in one place.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace aha::test_files {

template <class Number>
std::string le(Number value) {
  std::string out(sizeof(Number), '\0');
  std::memcpy(out.data(), &value, sizeof(Number));
  return out;
}
inline std::string u16(size_t value) {
  return le(static_cast<uint16_t>(value));
}
inline std::string u32(size_t value) {
  return le(static_cast<uint32_t>(value));
}
inline std::string u64(size_t value) {
  return le(static_cast<uint64_t>(value));
}

struct ZipEntry {
  std::string name = {}, content = {};
  // What can be made wrong.
  size_t flags = 0, method = 0;
  std::string local_name = {};  // empty = name
  size_t crc_xor = 0;
  size_t local_offset_plus = 0;  // added to the offset in the directory
  size_t stated_size_plus = 0;   // added to both sizes in the directory
  bool zip64 = false;            // sizes and offset in the zip64 field of the directory
};

struct ZipForm {
  bool zip64_end = false;
  size_t members_plus = 0, directory_size_plus = 0, directory_offset_plus = 0;
  std::string comment = {}, before_end = {};
};

inline std::string zip(const std::vector<ZipEntry>& entries, const ZipForm& form = {}) {
  std::string out, directory;
  for (const ZipEntry& entry : entries) {
    const size_t offset = out.size() + entry.local_offset_plus;
    const size_t size = entry.content.size() + entry.stated_size_plus;
    const auto* data = reinterpret_cast<const Bytef*>(entry.content.data());
    const size_t crc =
        ::crc32_z(0, entry.content.empty() ? nullptr : data, entry.content.size()) ^ entry.crc_xor;
    const std::string local_name = entry.local_name.empty() ? entry.name : entry.local_name;
    const bool follow = entry.flags & 8;
    out += "PK\3\4" + u16(0) + u16(entry.flags) + u16(entry.method) + u32(0) + u32(follow ? 0 : crc) +
           u32(follow ? 0 : size) + u32(follow ? 0 : size) + u16(local_name.size()) + u16(0) + local_name +
           entry.content;
    const std::string extra = entry.zip64 ? u16(1) + u16(24) + u64(size) + u64(size) + u64(offset) : "";
    const size_t stated = entry.zip64 ? 0xffffffff : size;
    directory += "PK\1\2" + u16(0) + u16(0) + u16(entry.flags) + u16(entry.method) + u32(0) + u32(crc) +
                 u32(stated) + u32(stated) + u16(entry.name.size()) + u16(extra.size()) + u16(0) + u16(0) +
                 u16(0) + u32(0) + u32(entry.zip64 ? 0xffffffff : offset) + entry.name + extra;
  }
  const size_t offset = out.size() + form.directory_offset_plus,
               size = directory.size() + form.directory_size_plus;
  const size_t members = entries.size() + form.members_plus;
  out += directory + form.before_end;
  if (form.zip64_end) {
    const size_t record = out.size();
    out += "PK\6\6" + u64(44) + u16(45) + u16(45) + u32(0) + u32(0) + u64(members) + u64(members) +
           u64(size) + u64(offset);
    out += "PK\6\7" + u32(0) + u64(record) + u32(1);
    out += std::string("PK\5\6") + u16(0) + u16(0) + u16(0xffff) + u16(0xffff) + u32(0xffffffff) +
           u32(0xffffffff);
  } else {
    out += std::string("PK\5\6") + u16(0) + u16(0) + u16(members) + u16(members) + u32(size) + u32(offset);
  }
  return out + u16(form.comment.size()) + form.comment;
}

// A .npy file with any header; version 1 or 2.
inline std::string npy(const std::string& header, const std::string& data, char version = 1) {
  std::string file("\x93NUMPY", 6);
  file += version;
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) file += static_cast<char>(header.size() >> 8 * i & 255);
  return file + header + data;
}

}  // namespace aha::test_files
