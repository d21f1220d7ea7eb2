#include "aha/base/npy.h"

#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMostDimensions = 32;  // numpy's own limit

// The header is a Python dictionary of three entries: {'descr': '<f4', 'fortran_order': False, 'shape': (3,
// 4), }
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr")
        type = quoted();
      else if (key == "fortran_order")
        fortran_order = truth();
      else if (key == "shape")
        shape = numbers();
      else
        throw input_error("{}: expected the header entries descr, fortran_order and shape, found '{}'", name_,
                          printable(key));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!type || !fortran_order || !shape)
      throw input_error(
          "{}: expected the header entries descr, fortran_order and shape, found only a part of them", name_);
  }

  std::optional<std::string> type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      throw input_error("{}: expected '{}' in the header, found '{}'", name_, c,
                        printable(text_.substr(at_), 20));
  }
  std::string quoted() {
    const char quote = accept('"') ? '"' : (expect('\''), '\'');
    const size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) throw input_error("{}: a text in the header does not end", name_);
    std::string found(text_.substr(at_, end - at_));
    at_ = end + 1;
    return found;
  }
  bool truth() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    throw input_error("{}: expected True or False in the header, found '{}'", name_,
                      printable(text_.substr(at_), 20));
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> found;
    expect('(');
    while (!accept(')')) {
      found.push_back(number());
      if (found.size() > kMostDimensions)
        throw input_error("{}: expected at most {} dimensions", name_, kMostDimensions);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return found;
  }
  int64_t number() {
    skip_space();
    int64_t value = 0;
    const size_t start = at_;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); ++at_) {
      if (at_ - start >= 18) throw input_error("{}: a size in the header is too large", name_);
      value = value * 10 + (text_[at_] - '0');
    }
    if (at_ == start)
      throw input_error("{}: expected a size in the header, found '{}'", name_,
                        printable(text_.substr(at_), 20));
    return value;
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

// IEEE half precision: 1 sign, 5 exponent, 10 fraction bits.
float float_from_half(uint16_t half) {
  const float sign = half >> 15 ? -1.0f : 1.0f;
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31) return fraction ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

template <class Stored, class Convert>
void convert_all(std::span<const std::byte> data, std::vector<float>& values, const Convert& convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, data.data() + i * sizeof stored, sizeof stored);
    values[i] = convert(stored);
  }
}

struct StoredType {
  std::string_view name;
  size_t bytes;
  void (*convert)(std::span<const std::byte>, std::vector<float>&);
};

template <class Stored>
void convert_plainly(std::span<const std::byte> data, std::vector<float>& values) {
  convert_all<Stored>(data, values, [](Stored value) { return static_cast<float>(value); });
}

constexpr StoredType kTypes[] = {
    {"<f4", 4, convert_plainly<float>},
    {"<f8", 8, convert_plainly<double>},
    {"<f2", 2,
     [](std::span<const std::byte> data, std::vector<float>& values) {
       convert_all<uint16_t>(data, values, float_from_half);
     }},
    {"|u1", 1, convert_plainly<uint8_t>},
    {"<i4", 4, convert_plainly<int32_t>},
    {"<i8", 8, convert_plainly<int64_t>},
};
static_assert(std::endian::native == std::endian::little, "the stored types are little-endian");

// Product of the sizes, or nothing where it does not fit in 2^62.
std::optional<uint64_t> product(const std::vector<int64_t>& shape) {
  constexpr uint64_t kMost = uint64_t{1} << 62;
  uint64_t total = 1;
  for (const int64_t size : shape) {
    if (size < 0 || (total != 0 && static_cast<uint64_t>(size) > kMost / total)) return {};
    total *= static_cast<uint64_t>(size);
  }
  return total;
}

}  // namespace

NpyArray npy_from_bytes(std::span<const std::byte> bytes, const std::string& path) {
  const std::string name = printable(path, 300);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 10)
    throw input_error("{}: expected a .npy file, found another kind of content", name);
  const int version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3)
    throw input_error("{}: expected .npy version 1, 2 or 3, found {}", name, version);
  const size_t length_bytes = version == 1 ? 2 : 4, start = 8 + length_bytes;
  if (text.size() < start) throw input_error("{}: the .npy header ends too early", name);
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    length |= static_cast<size_t>(static_cast<unsigned char>(text[8 + i])) << 8 * i;
  if (length > text.size() - start)
    throw input_error("{}: expected a header of {} bytes, found {}", name, length, text.size() - start);

  HeaderParser header(text.substr(start, length), name);
  header.parse();
  if (*header.fortran_order) throw input_error("{}: expected C order, found Fortran order", name);
  const StoredType* type = nullptr;
  for (const StoredType& known : kTypes)
    if (known.name == *header.type) type = &known;
  if (!type)
    throw input_error("{}: expected one of the types <f4 <f8 <f2 |u1 <i4 <i8, found '{}'", name,
                      printable(*header.type));

  const auto data = bytes.subspan(start + length);
  const std::optional<uint64_t> count = product(*header.shape);
  if (!count || *count > data.size() / type->bytes)
    throw input_error("{}: expected {} values of {} bytes, found {} bytes", name,
                      count ? fmt::to_string(*count) : "too many", type->bytes, data.size());
  NpyArray array{std::move(*header.shape), std::vector<float>(*count)};
  type->convert(data, array.values);
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
