// Weight files made by hand, byte by byte, so that tests can make them wrong in one place.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aha/base/test_files.h"
#include "aha/weights/tensor_table.h"

namespace aha::test_files {

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
