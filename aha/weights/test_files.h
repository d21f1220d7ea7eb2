// Weight files made by hand, byte by byte, so that tests can make them wrong in one place.
#pragma once

#include <zlib.h>

#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aha/weights/tensor_table.h"

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

inline std::string floats(std::initializer_list<float> values) {
  std::string out;
  for (const float value : values) out += le(value);
  return out;
}

inline std::shared_ptr<const std::string> shared(std::string content) {
  return std::make_shared<const std::string>(std::move(content));
}

inline std::string safetensors(std::string_view header, std::string_view data = "") {
  return u64(header.size()) + std::string(header) + std::string(data);
}

// ---- zip ----

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

// ---- pickle, protocol 2 ----

inline std::string pickle(std::string_view body) {
  return std::string("\x80\x02") + std::string(body) + ".";
}
inline std::string text(std::string_view value) {
  return std::string("X") + u32(value.size()) + std::string(value);
}
inline std::string integer(int64_t value) {
  return std::string("\x8a\x08", 2) + le(value);
}
inline std::string global(std::string_view module, std::string_view name) {
  return std::string("c") + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string tuple(std::initializer_list<std::string> items) {
  std::string out = "(";
  for (const auto& item : items) out += item;
  return out + "t";
}
inline std::string call(std::string_view module, std::string_view name,
                        std::initializer_list<std::string> arguments) {
  return global(module, name) + tuple(arguments) + "R";
}
inline std::string dict(std::initializer_list<std::pair<std::string, std::string>> entries) {
  std::string out = "}(";
  for (const auto& [key, value] : entries) out += text(key) + value;
  return out + "u";
}

struct TensorForm {
  std::string type = "FloatStorage", key = "0";
  int64_t numel = 6, offset = 0;
  std::vector<int64_t> shape = {2, 3}, strides = {3, 1};
  bool legacy = false;
};

inline std::string numbers(const std::vector<int64_t>& values) {
  std::string out = "(";
  for (const int64_t value : values) out += integer(value);
  return out + "t";
}

inline std::string tensor(const TensorForm& form = {}) {
  const std::string id = std::string("(") + text("storage") + global("torch", form.type) + text(form.key) +
                         text("cpu") + integer(form.numel) + (form.legacy ? "N" : "") + "tQ";
  return call("torch._utils", "_rebuild_tensor_v2",
              {id, integer(form.offset), numbers(form.shape), numbers(form.strides), "\x89",
               call("collections", "OrderedDict", {})});
}

inline std::string torch_zip(std::string_view body, const std::map<std::string, std::string>& storages) {
  std::vector<ZipEntry> entries = {{"top/data.pkl", pickle(body)}};
  for (const auto& [key, content] : storages) entries.push_back({"top/data/" + key, content});
  entries.push_back({"top/version", "3\n"});
  return zip(entries);
}

inline std::string torch_legacy(std::string_view body,
                                const std::vector<std::pair<std::string, std::string>>& storages,
                                size_t item_size = 4) {
  std::string out = pickle(std::string_view("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12)) +
                    pickle(std::string("M") + u16(1001)) + pickle(dict({{"little_endian", "\x88"}})) +
                    pickle(body);
  std::string keys = "](", data;
  for (const auto& [key, content] : storages) {
    keys += text(key);
    data += u64(content.size() / item_size) + content;
  }
  return out + pickle(keys + "e") + data;
}

}  // namespace aha::test_files
