#include "aha/weights/tfjs.h"

#include <nlohmann/json.hpp>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

using nlohmann::json;

const json& tfjs_member(const json& object, const char* key, json::value_t type, const std::string& where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || found->type() != type)
    throw input_error("{}: expected \"{}\" as {}", where, key, json(type).type_name());
  return *found;
}

std::vector<int64_t> tfjs_shape(const json& shape, const std::string& where) {
  constexpr int64_t kMost = int64_t{1} << 31;
  std::vector<int64_t> sizes;
  int64_t count = 1;
  for (const auto& size : shape) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() < 1 || size.get<uint64_t>() > kMost ||
        (count *= size.get<int64_t>()) > kMost)
      throw input_error("{}: expected a shape of sizes from 1, found {}", where, printable(shape.dump()));
    sizes.push_back(size.get<int64_t>());
  }
  return sizes;
}

}  // namespace

TensorTable read_tfjs(const std::string& folder) {
  const std::string path = folder + "/model.json";
  json model;
  try {
    model = json::parse(read_file(path, 64 << 20));
  } catch (const json::exception& error) {
    throw input_error("{}: not valid JSON: {}", path, printable(error.what(), 160));
  }
  TensorTable table;
  table.source = path;
  for (const auto& group : tfjs_member(model, "weightsManifest", json::value_t::array, path)) {
    const auto bytes = std::make_shared<std::string>();
    for (const auto& shard : tfjs_member(group, "paths", json::value_t::array, path)) {
      const std::string name = shard.is_string() ? shard.get<std::string>() : "";
      if (name.empty() || name.find('/') != std::string::npos || name == "..")
        throw input_error("{}: expected shards beside it, found {}", path, printable(shard.dump()));
      *bytes += read_file(folder + "/" + name);
    }
    size_t at = 0;
    for (const auto& weight : tfjs_member(group, "weights", json::value_t::array, path)) {
      const auto name = tfjs_member(weight, "name", json::value_t::string, path).get<std::string>();
      const std::string where = fmt::format("{}: {}", path, printable(name));
      const auto dtype = tfjs_member(weight, "dtype", json::value_t::string, where).get<std::string>();
      if (dtype != "float32" || weight.contains("quantization"))
        throw input_error("{}: expected float32 without quantization, found {}", where,
                          printable(weight.dump()));
      TensorView view;
      view.shape = tfjs_shape(tfjs_member(weight, "shape", json::value_t::array, where), where);
      const size_t size = view.numel() * sizeof(float);
      if (size > bytes->size() - at)
        throw input_error("{}: expected {} bytes from byte {} on, found {}", where, size, at,
                          bytes->size() - at);
      view.bytes = std::as_bytes(std::span(*bytes)).subspan(at, size);
      view.owner = bytes;
      at += size;
      if (!table.tensors.emplace(name, std::move(view)).second)
        throw input_error("{}: expected it once, found it twice", where);
    }
    if (at != bytes->size())
      throw input_error("{}: expected {} bytes of weights in a group, found {}", path, at, bytes->size());
  }
  return table;
}

}  // namespace aha
