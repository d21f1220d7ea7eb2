#include "aha/weights/ort_file.h"

#include <cstring>
#include <optional>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

constexpr std::string_view kOrtMagic = "ORTM";
constexpr uint64_t kOrtMagicAt = 4;
constexpr uint64_t kMostOrtTensors = 100'000;
constexpr uint64_t kMostOrtNameBytes = 1024;
constexpr uint64_t kMostOrtRank = 16;

// Items of a vector, somewhere in the file.
struct OrtRun {
  uint64_t at = 0, count = 0;
};

class OrtBytes {
 public:
  OrtBytes(std::span<const std::byte> bytes, std::string file) : bytes_(bytes), file_(std::move(file)) {}

  const std::string& file() const { return file_; }

  std::span<const std::byte> run(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at)
      throw input_error("{}: expected {} bytes from byte {} on, found the end at {}: cut off or damaged",
                        file_, size, at, bytes_.size());
    return bytes_.subspan(at, size);
  }

  template <class Number>
  Number number(uint64_t at) const {
    Number value;
    std::memcpy(&value, run(at, sizeof(Number)).data(), sizeof(Number));
    return value;
  }

  // Where the offset that is stored there leads.
  uint64_t follow(uint64_t at) const { return at + number<uint32_t>(at); }

  // A vector behind such an offset, whose items of `item` bytes are all in the file.
  OrtRun vector(uint64_t at, uint64_t item) const {
    const uint64_t place = follow(at);
    const OrtRun found = {place + sizeof(uint32_t), number<uint32_t>(place)};
    run(found.at, found.count * item);  // at most 8 * 2^32
    return found;
  }

 private:
  std::span<const std::byte> bytes_;
  std::string file_;
};

class OrtTable {
 public:
  OrtTable(const OrtBytes& bytes, uint64_t at) : bytes_(&bytes), at_(at) {
    const int64_t fields = static_cast<int64_t>(at) - bytes.number<int32_t>(at);
    if (fields < 0)
      throw input_error("{}: expected the fields of a table within the file, found them before its begin",
                        bytes.file());
    fields_ = static_cast<uint64_t>(fields);
    size_ = bytes.number<uint16_t>(fields_);
  }

  // Where the field's value is; nothing where the table has none.
  std::optional<uint64_t> field(uint64_t index) const {
    const uint64_t entry = 2 * sizeof(uint16_t) + index * sizeof(uint16_t);
    if (entry + sizeof(uint16_t) > size_) return std::nullopt;
    const auto offset = bytes_->number<uint16_t>(fields_ + entry);
    return offset == 0 ? std::nullopt : std::optional(at_ + offset);
  }

  OrtTable table(uint64_t index, const char* what) const {
    const auto place = field(index);
    if (!place) throw input_error("{}: expected a {}, found none", bytes_->file(), what);
    return {*bytes_, bytes_->follow(*place)};
  }

  // Empty where the table has no such field.
  OrtRun vector(uint64_t index, uint64_t item) const {
    const auto place = field(index);
    return place ? bytes_->vector(*place, item) : OrtRun{};
  }

 private:
  const OrtBytes* bytes_;
  uint64_t at_, fields_ = 0, size_ = 0;
};

// ONNX's numbers of the types that are numbers.
std::optional<DType> dtype_from_onnx(int32_t type) {
  switch (type) {
    case 1:
      return DType::kF32;
    case 2:
      return DType::kU8;
    case 3:
      return DType::kI8;
    case 5:
      return DType::kI16;
    case 6:
      return DType::kI32;
    case 7:
      return DType::kI64;
    case 9:
      return DType::kBool;
    case 10:
      return DType::kF16;
    case 11:
      return DType::kF64;
    case 16:
      return DType::kBF16;
    default:
      return std::nullopt;
  }
}

std::string ort_name(const OrtBytes& bytes, const OrtTable& tensor) {
  const OrtRun text = tensor.vector(0, 1);
  if (text.count == 0 || text.count > kMostOrtNameBytes)
    throw input_error("{}: expected initializers with a name of at most {} bytes, found one of {}",
                      bytes.file(), kMostOrtNameBytes, text.count);
  const auto found = bytes.run(text.at, text.count);
  return {reinterpret_cast<const char*>(found.data()), found.size()};
}

TensorView ort_tensor(const OrtBytes& bytes, const OrtTable& tensor, const std::string& where) {
  TensorView view;
  const auto type_at = tensor.field(3);
  const int32_t type = type_at ? bytes.number<int32_t>(*type_at) : 0;
  const auto dtype = dtype_from_onnx(type);
  if (!dtype) throw input_error("{}: expected numbers of 1 to 8 bytes, found ONNX's type {}", where, type);
  view.dtype = *dtype;

  const OrtRun sides = tensor.vector(2, sizeof(int64_t));
  if (sides.count > kMostOrtRank)
    throw input_error("{}: expected at most {} dimensions, found {}", where, kMostOrtRank, sides.count);
  uint64_t needed = size_of(view.dtype);
  for (uint64_t i = 0; i < sides.count; ++i) {
    const auto side = bytes.number<int64_t>(sides.at + i * sizeof(int64_t));
    if (side < 0 || __builtin_mul_overflow(needed, static_cast<uint64_t>(side), &needed))
      throw input_error("{}: expected a shape that can be, found a side of {}", where, side);
    view.shape.push_back(side);
  }
  const OrtRun data = tensor.vector(4, 1);
  if (data.count != needed)
    throw input_error("{}: {} {} takes {} bytes, found {} in this file", where, name_of(view.dtype),
                      text_from_shape(view.shape), needed, data.count);
  view.bytes = bytes.run(data.at, data.count);
  return view;
}

}  // namespace

bool is_ort_file(std::span<const std::byte> bytes) {
  return bytes.size() >= kOrtMagicAt + kOrtMagic.size() &&
         std::memcmp(bytes.data() + kOrtMagicAt, kOrtMagic.data(), kOrtMagic.size()) == 0;
}

TensorTable read_ort_file(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  return ort_file_from_bytes(file->bytes(), file, path);
}

TensorTable ort_file_from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                std::string_view name) {
  const OrtBytes reader(bytes, printable(name, 300));
  if (!is_ort_file(bytes))
    throw input_error("{}: expected an ONNX Runtime model ({} at byte {}), found something else",
                      reader.file(), kOrtMagic, kOrtMagicAt);
  const OrtTable session(reader, reader.follow(0));
  const OrtTable graph = session.table(1, "model").table(7, "graph");
  const OrtRun list = graph.vector(0, sizeof(uint32_t));
  if (list.count > kMostOrtTensors)
    throw input_error("{}: expected at most {} initializers, found {}", reader.file(), kMostOrtTensors,
                      list.count);
  TensorTable table;
  table.source = name;
  uint64_t held = 0;
  for (uint64_t i = 0; i < list.count; ++i) {
    const OrtTable tensor(reader, reader.follow(list.at + i * sizeof(uint32_t)));
    const std::string called = ort_name(reader, tensor);
    const std::string where = fmt::format("{}: initializer '{}'", reader.file(), printable(called));
    TensorView view = ort_tensor(reader, tensor, where);
    view.owner = owner;
    if ((held += view.bytes.size()) > bytes.size())
      throw input_error(
          "{}: expected numbers that belong to one initializer each, found more than the file "
          "has bytes",
          where);
    if (!table.tensors.emplace(called, std::move(view)).second)
      throw input_error("{}: expected it once, found it twice", where);
  }
  return table;
}

}  // namespace aha
