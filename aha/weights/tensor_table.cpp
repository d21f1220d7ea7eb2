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

struct DTypeRow {
  DType dtype;
  std::string_view name;
  size_t size;
};

// In the order of the enumeration.
constexpr DTypeRow kDTypes[] = {
    {DType::kBool, "BOOL", 1}, {DType::kU8, "U8", 1},   {DType::kI8, "I8", 1},   {DType::kI16, "I16", 2},
    {DType::kI32, "I32", 4},   {DType::kI64, "I64", 8}, {DType::kF16, "F16", 2}, {DType::kBF16, "BF16", 2},
    {DType::kF32, "F32", 4},   {DType::kF64, "F64", 8},
};

const DTypeRow& row_of(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)];
}

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

// Bytes from a file need not be aligned, hence memcpy.
template <class Stored, class Convert>
void convert(std::span<const std::byte> bytes, std::vector<float>& out, Convert float_from) {
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    out[i] = float_from(value);
  }
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
  const auto plain = [](auto value) { return static_cast<float>(value); };
  switch (view.dtype) {
    case DType::kBool:
      convert<uint8_t>(view.bytes, out, [](uint8_t value) { return value ? 1.0f : 0.0f; });
      break;
    case DType::kU8:
      convert<uint8_t>(view.bytes, out, plain);
      break;
    case DType::kI8:
      convert<int8_t>(view.bytes, out, plain);
      break;
    case DType::kI16:
      convert<int16_t>(view.bytes, out, plain);
      break;
    case DType::kI32:
      convert<int32_t>(view.bytes, out, plain);
      break;
    case DType::kI64:
      convert<int64_t>(view.bytes, out, plain);
      break;
    case DType::kF16:
      convert<uint16_t>(view.bytes, out, float_from_half);
      break;
    case DType::kBF16:
      convert<uint16_t>(view.bytes, out, float_from_bfloat16);
      break;
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), view.bytes.data(), out.size() * sizeof(float));
      break;
    case DType::kF64:
      convert<double>(view.bytes, out, plain);
      break;
  }
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
