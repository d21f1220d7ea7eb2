#include "aha/base/npy.h"

#include <cmath>
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

// The element types that are read, all as float32.
struct NpyType {
  std::string_view name;
  size_t bytes;
  float (*value)(const std::byte* stored);
};

template <class Stored>
float plain_value(const std::byte* stored) {
  Stored value;
  std::memcpy(&value, stored, sizeof value);
  return static_cast<float>(value);
}

// IEEE half precision: 1 sign, 5 exponent, 10 fraction bits.
float half_value(const std::byte* stored) {
  uint16_t half;
  std::memcpy(&half, stored, sizeof half);
  const float sign = half >> 15 ? -1.0f : 1.0f;
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return fraction ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

constexpr NpyType kNpyTypes[] = {{"<f4", 4, plain_value<float>},   {"<f8", 8, plain_value<double>},
                                 {"<f2", 2, half_value},           {"|u1", 1, plain_value<uint8_t>},
                                 {"<i4", 4, plain_value<int32_t>}, {"<i8", 8, plain_value<int64_t>}};

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
  if (!header.is_object() || header.size() != 3 || !header.value("descr", nlohmann::json()).is_string() ||
      header.value("fortran_order", nlohmann::json()) != false || !header.contains("shape") ||
      !header["shape"].is_array() || !std::ranges::all_of(header["shape"], is_size))
    throw input_error(
        "{}: expected a header {{'descr': '<f4', 'fortran_order': False, 'shape': (H, W)}}: C order, found "
        "{}",
        name, printable(text, 200));
  const auto* type = std::ranges::find(kNpyTypes, header["descr"].get<std::string>(), &NpyType::name);
  if (type == std::end(kNpyTypes))
    throw input_error("{}: expected one of the types <f4 <f8 <f2 |u1 <i4 <i8, found '{}'", name,
                      printable(header["descr"].get<std::string>()));

  NpyArray array{header["shape"], {}};
  const std::optional<uint64_t> count = product(array.shape);
  if (!count || *count > reader.left() / type->bytes)
    throw input_error("{}: expected {} values of {} bytes, found {} bytes", name,
                      count ? fmt::to_string(*count) : "too many", type->bytes, reader.left());
  array.values.resize(*count);
  const auto data = reader.take(*count * type->bytes);
  for (size_t i = 0; i < array.values.size(); ++i)
    array.values[i] = type->value(data.data() + i * type->bytes);
  return array;
}

NpyArray read_npy(const std::string& path) {
  const MappedFile file(path);
  return npy_from_bytes(file.bytes(), path);
}

std::string npy_bytes(const std::vector<int64_t>& shape, std::span<const float> values) {
  if (product(shape) != values.size())
    throw input_error("expected as many values as shape [{}] has, found {}", fmt::join(shape, ", "),
                      values.size());
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}{}), }}",
                                   fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // The values start at a multiple of 64 bytes; the header ends with a newline.
  constexpr size_t kBefore = 10;
  header.resize((kBefore + header.size() + 1 + 63) / 64 * 64 - kBefore - 1, ' ');
  header += '\n';
  const char head[] = {1, 0, static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  std::string out;
  out.append(kMagic).append(head, sizeof head).append(header);
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  return out;
}

void write_npy(const std::string& path, const std::vector<int64_t>& shape, std::span<const float> values) {
  if (product(shape) != values.size())
    throw input_error("{}: expected as many values as shape [{}] has, found {}", printable(path, 300),
                      fmt::join(shape, ", "), values.size());
  write_file_atomically(path, npy_bytes(shape, values));
}

}  // namespace aha
