#include "aha/train/checkpoint.h"

#include "aha/tensor/torch.h"

#include <zlib.h>

#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/log.h"
#include "aha/weights/safetensors.h"

namespace aha {
namespace {

constexpr const char* kStateKey = "aha.run";
constexpr const char* kSumKey = "aha.crc32";

// Of names, shapes, numbers and the state.
std::string checksum(const TensorTable& table) {
  uLong sum = ::crc32_z(0, nullptr, 0);
  const auto add = [&](std::span<const std::byte> bytes) {
    sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  };
  for (const auto& [name, tensor] : table.tensors) {
    add(std::as_bytes(std::span(name)));
    const std::string shape = text_from_shape(tensor.shape);
    add(std::as_bytes(std::span(shape)));
    add(tensor.bytes);
  }
  add(std::as_bytes(std::span(table.metadata.at(kStateKey))));
  return fmt::format("{:08x}", sum);
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  TensorTable table;
  for (const auto& [name, tensor] : checkpoint.tensors) table.tensors[name] = view_from_tensor(tensor);
  table.metadata[kStateKey] = checkpoint.state.dump();
  table.metadata[kSumKey] = checksum(table);
  write_safetensors(path, table);
}

std::optional<nlohmann::json> read_checkpoint(const std::string& path, const Checkpoint& into) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const TensorTable table = read_safetensors(path);
  const auto text = table.metadata.find(kStateKey);
  auto state =
      text == table.metadata.end() ? nlohmann::json() : nlohmann::json::parse(text->second, nullptr, false);
  if (!state.is_object())
    throw input_error("{}: expected a checkpoint of a run, found a file without its state", path);
  if (const auto stored = table.metadata.find(kSumKey); stored == table.metadata.end())
    spdlog::warn("{}: has no checksum, so it is from an earlier version or damaged", path);
  else if (const std::string found = checksum(table); found != stored->second)
    throw input_error("{}: damaged: expected checksum {}, found {}", path, stored->second, found);
  for (const auto& [name, tensor] : into.tensors)
    if (const auto& found = table.at(name).shape; found != tensor.sizes().vec())
      throw input_error("{}: {}: expected shape {}, found {}", path, name, text_from_shape(tensor.sizes()),
                        text_from_shape(found));
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : into.tensors) Tensor(tensor).copy_(tensor_from_view(table.at(name)));
  return state;
}

void check_same_settings(const nlohmann::json& stored, const nlohmann::json& given, const std::string& path) {
  for (const auto& [name, value] : given.items())
    if (!stored.contains(name) || stored[name] != value)
      throw input_error(
          "--resume: {} was made with {} = {}, found {} now; resume with the settings of the run, or give "
          "another --out",
          path, name, stored.value(name, nlohmann::json()).dump(), value.dump());
}

}  // namespace aha
