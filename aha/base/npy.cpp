#include "aha/base/npy.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "aha/base/byte_reader.h"
#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMostHeaderBytes = 10'000;  // numpy's own limit

// Python's {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } as JSON, which differs in quotes,
// brackets, truth values and the comma before an end.
nlohmann::json json_from_python(std::string_view text) {
  std::string json;
  for (const char c : text) {
    if (c == ')' || c == '}') json.erase(json.find_last_not_of(", ") + 1);
    json += c == '\'' ? '"' : c == '(' ? '[' : c == ')' ? ']' : c;
  }
  if (const size_t at = json.find("False"); at != json.npos) json[at] = 'f';
  return nlohmann::json::parse(json, nullptr, false);
}

// Product of the sizes, or nothing where it is beyond 64 bits.
std::optional<uint64_t> product(const std::vector<int64_t>& shape) {
  uint64_t total = 1;
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(total, static_cast<uint64_t>(size), &total)) return {};
  return total;
}

}  // namespace

NpyArray npy_from_bytes(std::span<const std::byte> bytes, const std::string& path) {
  const std::string name = printable(path, 300);
  ByteReader reader(bytes, name);
  if (bytes.size() < 10 || reader.text(kMagic.size()) != kMagic)
    throw input_error("{}: expected a .npy file, found another kind of content", name);
  const int version = reader.u16() & 255;
  if (version < 1 || version > 3)
    throw input_error("{}: expected .npy version 1, 2 or 3, found {}", name, version);
  const size_t length = version == 1 ? reader.u16() : reader.u32();
  if (length > kMostHeaderBytes)
    throw input_error("{}: expected a header of at most {} bytes, found {}", name, kMostHeaderBytes, length);
  const std::string_view text = reader.text(length);
  const nlohmann::json header = json_from_python(text);
  const auto is_size = [](const nlohmann::json& size) { return size.is_number_unsigned(); };
  if (!header.is_object() || header.size() != 3 || header.value("descr", nlohmann::json()) != "<f4" ||
      header.value("fortran_order", nlohmann::json()) != false || !header.contains("shape") ||
      !header["shape"].is_array() || !std::ranges::all_of(header["shape"], is_size))
    throw input_error(
        "{}: expected a header {{'descr': '<f4', 'fortran_order': False, 'shape': (H, W)}}: float32 in C "
        "order, found {}",
        name, printable(text, 200));

  NpyArray array{header["shape"], {}};
  const std::optional<uint64_t> count = product(array.shape);
  if (!count || *count > reader.left() / sizeof(float))
    throw input_error("{}: expected {} values of 4 bytes, found {} bytes", name,
                      count ? fmt::to_string(*count) : "too many", reader.left());
  array.values.resize(*count);
  const auto data = reader.take(*count * sizeof(float));
  if (*count > 0) std::memcpy(array.values.data(), data.data(), data.size());
  return array;
}

NpyArray read_npy(const std::string& path) {
  const MappedFile file(path);
  return npy_from_bytes(file.bytes(), path);
}

void write_npy(const std::string& path, const std::vector<int64_t>& shape, std::span<const float> values) {
  if (product(shape) != values.size())
    throw input_error("{}: expected as many values as shape [{}] has, found {}", printable(path, 300),
                      fmt::join(shape, ", "), values.size());
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}{}), }}",
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // The values start at a multiple of 64 bytes; the header ends with a newline.
  constexpr size_t kBefore = 10;
  header.resize((kBefore + header.size() + 1 + 63) / 64 * 64 - kBefore - 1, ' ');
  header += '\n';
  const char head[] = {1, 0, static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  write_file_atomically(path, [&](const ByteSink& sink) {
    sink(std::as_bytes(std::span(kMagic)));
    sink(std::as_bytes(std::span(head)));
    sink(std::as_bytes(std::span(header)));
    sink(std::as_bytes(values));
  });
}

}  // namespace aha
