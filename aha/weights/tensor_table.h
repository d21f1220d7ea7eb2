// Named tensors as they lie in a file: type, shape, bytes. Knows nothing of networks and nothing of torch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aha {

enum class DType { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };

size_t size_of(DType dtype);
std::string_view name_of(DType dtype);  // as safetensors writes it: "F32"
DType dtype_from_name(std::string_view name,
                      std::string_view where);  // input error for a type that libtorch cannot hold

// Row-major, little-endian, contiguous. `owner` keeps the bytes alive (a mapped file, a buffer).
struct TensorView {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  int64_t numel() const;
};

std::string text_from_shape(std::span<const int64_t> shape);  // "[768, 3, 16, 16]"

// The elements converted to float32 (any stored type).
std::vector<float> floats_from_view(const TensorView& view);

struct TensorTable {
  std::map<std::string, TensorView, std::less<>> tensors;
  std::map<std::string, std::string> metadata;  // safetensors' __metadata__
  std::string source;                           // the file, for messages

  bool has(std::string_view name) const { return tensors.find(name) != tensors.end(); }
  // Input error that names the nearest names where it is missing.
  const TensorView& at(std::string_view name) const;
  std::vector<std::string> names() const;
};

// A view on freshly owned bytes.
TensorView view_from_floats(std::vector<int64_t> shape, std::vector<float> values);

}  // namespace aha
