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

// ---- ONNX Runtime ----

struct OrtTensor {
  std::string name;
  std::vector<int64_t> dims;
  int type = 1;  // ONNX's number; 1 = float32
  std::string data = {};
};

// Where the parts of such a file are, for those who make them wrong.
struct OrtPlaces {
  size_t model_pointer = 0, graph_fields = 0, list = 0;
  std::vector<size_t> tables, names, data;  // of the tensors
};

inline std::string ort_file(const std::vector<OrtTensor>& tensors, OrtPlaces* places = nullptr) {
  std::string out = u32(0) + "ORTM";
  const auto put = [&](const std::string& bytes) {
    out += bytes;
    return out.size() - bytes.size();
  };
  const auto set = [&](size_t at, const std::string& bytes) { out.replace(at, bytes.size(), bytes); };
  const auto point = [&](size_t at, size_t to) { set(at, u32(to - at)); };
  // Fields of four bytes, field i at 4 + 4 * i behind the place that is returned.
  const auto table = [&](size_t count) {
    std::string fields = u16(4 + 2 * count) + u16(4 + 4 * count);
    for (size_t i = 0; i < count; ++i) fields += u16(4 + 4 * i);
    put(fields);
    return put(u32(fields.size()) + std::string(4 * count, '\0'));
  };
  const auto field = [](size_t at, size_t index) { return at + 4 + 4 * index; };
  const auto vector = [&](size_t pointer, size_t count, const std::string& items) {
    point(pointer, put(u32(count) + items));
    return out.size() - items.size();
  };

  OrtPlaces found;
  const size_t session = table(2), model = table(8);
  point(0, session);
  point(found.model_pointer = field(session, 1), model);
  found.graph_fields = out.size();
  const size_t graph = table(1);
  point(field(model, 7), graph);
  found.list = vector(field(graph, 0), tensors.size(), std::string(4 * tensors.size(), '\0'));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t at = table(5);
    found.tables.push_back(at);
    point(found.list + 4 * i, at);
    found.names.push_back(vector(field(at, 0), tensors[i].name.size(), tensors[i].name));
    std::string dims;
    for (const int64_t side : tensors[i].dims) dims += le(side);
    vector(field(at, 2), tensors[i].dims.size(), dims);
    set(field(at, 3), u32(static_cast<size_t>(tensors[i].type)));
    found.data.push_back(vector(field(at, 4), tensors[i].data.size(), tensors[i].data));
  }
  if (places) *places = found;
  return out;
}

}  // namespace aha::test_files
