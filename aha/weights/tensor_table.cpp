#include "aha/weights/tensor_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "aha/base/error.h"

namespace aha {
namespace {

static_assert(std::endian::native == std::endian::little,
              "weight files are little-endian and are used as they lie");

float float_from_half(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) {  // zero and subnormal: mantissa * 2^-24 is exact in float32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1f ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

float float_from_bfloat16(uint16_t value) {
  return std::bit_cast<float>(uint32_t{value} << 16);
}

template <class Stored>
float float_from(Stored value) {
  return static_cast<float>(value);
}

// Bytes from a file need not be aligned, hence memcpy.
template <class Stored, float (*kConvert)(Stored) = float_from<Stored>>
void convert(std::span<const std::byte> bytes, std::vector<float>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = kConvert(value);
  }
}

struct DTypeRow {
  DType dtype;
  std::string_view name;
  size_t size;
  void (*to_floats)(std::span<const std::byte>, std::vector<float>&);
};

// In the order of the enumeration.
constexpr DTypeRow kDTypes[] = {
    {DType::kBool, "BOOL", 1, convert<uint8_t, [](uint8_t value) { return value ? 1.0f : 0.0f; }>},
    {DType::kU8, "U8", 1, convert<uint8_t>},
    {DType::kI8, "I8", 1, convert<int8_t>},
    {DType::kI16, "I16", 2, convert<int16_t>},
    {DType::kI32, "I32", 4, convert<int32_t>},
    {DType::kI64, "I64", 8, convert<int64_t>},
    {DType::kF16, "F16", 2, convert<uint16_t, float_from_half>},
    {DType::kBF16, "BF16", 2, convert<uint16_t, float_from_bfloat16>},
    {DType::kF32, "F32", 4, convert<float>},
    {DType::kF64, "F64", 8, convert<double>},
};

const DTypeRow& row_of(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)];
}

}  // namespace

size_t size_of(DType dtype) {
  return row_of(dtype).size;
}
std::string_view name_of(DType dtype) {
  return row_of(dtype).name;
}

DType dtype_from_name(std::string_view name, std::string_view where) {
  std::vector<std::string> available;
  for (const auto& row : kDTypes) {
    if (row.name == name) return row.dtype;
    available.emplace_back(row.name);
  }
  throw input_error("{}: element type '{}' is not supported; available: {}", where, printable(name),
                    list_some(available, available.size()));
}

int64_t TensorView::numel() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string text_from_shape(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::vector<float> floats_from_view(const TensorView& view) {
  std::vector<float> out(view.bytes.size() / size_of(view.dtype));
  row_of(view.dtype).to_floats(view.bytes, out);
  return out;
}

const TensorView& TensorTable::at(std::string_view name) const {
  if (const auto found = tensors.find(name); found != tensors.end()) return found->second;
  // Names with a common beginning are neighbors in the table.
  std::vector<std::string> near;
  auto after = tensors.lower_bound(name);
  for (auto before = after; before != tensors.begin() && near.size() < 3;) near.push_back((--before)->first);
  std::reverse(near.begin(), near.end());
  for (; after != tensors.end() && near.size() < 6; ++after) near.push_back(after->first);
  throw input_error("{}: expected a tensor '{}', found {} others; the nearest: {}", printable(source, 300),
                    printable(name), tensors.size(), list_some(near));
}

std::vector<std::string> TensorTable::names() const {
  std::vector<std::string> out;
  for (const auto& [name, view] : tensors) out.push_back(name);
  return out;
}

TensorView view_from_floats(std::vector<int64_t> shape, std::vector<float> values) {
  auto owned = std::make_shared<const std::vector<float>>(std::move(values));
  return {DType::kF32, std::move(shape), std::as_bytes(std::span(*owned)), owned};
}

}  // namespace aha
