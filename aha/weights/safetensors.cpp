#include "aha/weights/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

constexpr uint64_t kMostHeaderBytes = 100'000'000;
constexpr size_t kMostTensors = 1'000'000;
constexpr size_t kMostMetadata = 100'000;
constexpr size_t kMostNameBytes = 4096;
constexpr size_t kMostRank = 16;
constexpr std::string_view kMetadataKey = "__metadata__";

struct Entry {
  std::optional<DType> dtype;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;  // begin, end
};

struct Header {
  std::map<std::string, Entry, std::less<>> entries;
  std::optional<std::map<std::string, std::string>> metadata;
};

// Takes the header as the events of a JSON parser: what is not the one allowed shape is refused where it
// begins, so nothing deep or large is ever built.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(std::string_view file) : file_(file) {}
  Header take() { return std::move(header_); }

  bool start_object(size_t) override {
    switch (at_) {
      case At::kStart:
        at_ = At::kTop;
        return true;
      case At::kEntryValue:
        if (name_ == kMetadataKey) {
          header_.metadata.emplace();
          at_ = At::kMetadata;
        } else {
          at_ = At::kEntry;
        }
        return true;
      default:
        throw wrong("an object");
    }
  }

  bool end_object() override {
    if (at_ == At::kEntry) {
      if (!entry_->dtype || !entry_->shape || !entry_->offsets)
        throw refused("tensor '{}': expected dtype, shape and data_offsets, found {}", name_,
                      fmt::join(present(), ", "));
    }
    at_ = at_ == At::kTop ? At::kEnd : At::kTop;
    return true;
  }

  bool key(string_t& key) override {
    if (key.size() > kMostNameBytes)
      throw refused("expected names of at most {} bytes, found one of {}", kMostNameBytes, key.size());
    switch (at_) {
      case At::kTop:
        begin_entry(key);
        break;
      case At::kMetadata:
        begin_metadata(key);
        break;
      default:
        begin_field(key);
        break;
    }
    return true;
  }

  bool string(string_t& text) override {
    if (at_ == At::kMetadataValue) {
      (*header_.metadata)[metadata_key_] = std::move(text);
      at_ = At::kMetadata;
    } else if (at_ == At::kDType) {
      entry_->dtype =
          dtype_from_name(text, fmt::format("{}: tensor '{}'", printable(file_, 300), printable(name_)));
      at_ = At::kEntry;
    } else {
      throw wrong("a string");
    }
    return true;
  }

  bool start_array(size_t) override {
    if (at_ == At::kShape) {
      entry_->shape.emplace();
      at_ = At::kShapeItems;
    } else if (at_ == At::kOffsets) {
      entry_->offsets.emplace();
      at_ = At::kOffsetItems;
    } else {
      throw wrong("an array");
    }
    return true;
  }

  bool end_array() override {
    if (at_ == At::kOffsetItems && entry_->offsets->size() != 2)
      throw refused("tensor '{}': expected data_offsets [begin, end], found {} numbers", name_,
                    entry_->offsets->size());
    at_ = At::kEntry;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (at_ == At::kShapeItems) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        throw refused("tensor '{}': side {} is too large", name_, value);
      if (entry_->shape->size() == kMostRank)
        throw refused("tensor '{}': expected at most {} dimensions, found more", name_, kMostRank);
      entry_->shape->push_back(static_cast<int64_t>(value));
    } else if (at_ == At::kOffsetItems) {
      if (entry_->offsets->size() == 2)
        throw refused("tensor '{}': expected data_offsets [begin, end], found more numbers", name_);
      entry_->offsets->push_back(value);
    } else {
      throw wrong("a number");
    }
    return true;
  }

  bool null() override { throw wrong("null"); }
  bool boolean(bool) override { throw wrong("true or false"); }
  bool number_integer(number_integer_t) override { throw wrong("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    throw wrong("a number that is no 64-bit integer");
  }
  bool binary(binary_t&) override { throw wrong("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) override {
    throw refused("the header is not valid JSON at byte {}: {}", position, error.what());
  }

 private:
  enum class At {
    kStart,
    kTop,
    kEntryValue,
    kEntry,
    kDType,
    kShape,
    kShapeItems,
    kOffsets,
    kOffsetItems,
    kMetadata,
    kMetadataValue,
    kEnd
  };

  void begin_entry(const std::string& key) {
    if (header_.entries.size() >= kMostTensors)
      throw refused("expected at most {} tensors, found more", kMostTensors);
    name_ = key;
    if (key == kMetadataKey) {
      if (header_.metadata) throw refused("{} occurs twice", kMetadataKey);
    } else {
      const auto [place, is_new] = header_.entries.try_emplace(key);
      if (!is_new) throw refused("tensor '{}' occurs twice", key);
      entry_ = &place->second;
    }
    at_ = At::kEntryValue;
  }

  void begin_field(const std::string& key) {
    const bool is_dtype = key == "dtype", is_shape = key == "shape", is_offsets = key == "data_offsets";
    if (!is_dtype && !is_shape && !is_offsets)
      throw refused("tensor '{}': expected dtype, shape and data_offsets, found '{}'", name_, key);
    if ((is_dtype && entry_->dtype) || (is_shape && entry_->shape) || (is_offsets && entry_->offsets))
      throw refused("tensor '{}': '{}' occurs twice", name_, key);
    at_ = is_dtype ? At::kDType : is_shape ? At::kShape : At::kOffsets;
  }

  void begin_metadata(const std::string& key) {
    if (header_.metadata->size() >= kMostMetadata)
      throw refused("expected at most {} metadata entries, found more", kMostMetadata);
    if (header_.metadata->contains(key)) throw refused("metadata '{}' occurs twice", key);
    metadata_key_ = key;
    at_ = At::kMetadataValue;
  }

  std::vector<std::string> present() const {
    std::vector<std::string> out;
    if (entry_->dtype) out.push_back("dtype");
    if (entry_->shape) out.push_back("shape");
    if (entry_->offsets) out.push_back("data_offsets");
    if (out.empty()) out.push_back("none of them");
    return out;
  }

  const char* expected() const {
    switch (at_) {
      case At::kStart:
      case At::kEntryValue:
        return "an object";
      case At::kDType:
        return "the name of an element type";
      case At::kShape:
        return "an array of sides";
      case At::kOffsets:
        return "an array of two offsets";
      case At::kShapeItems:
      case At::kOffsetItems:
        return "non-negative integers";
      case At::kMetadataValue:
        return "text";
      default:
        return "nothing more";
    }
  }

  template <class... Args>
  Error refused(fmt::format_string<Args...> format, Args&&... args) const {
    const std::string what = fmt::format(format, std::forward<Args>(args)...);
    return input_error("{}: {}", printable(file_, 300), printable(what, 400));
  }
  Error wrong(const char* found) const {
    return refused("header entry '{}': expected {}, found {}", name_, expected(), found);
  }

  std::string_view file_;
  Header header_;
  At at_ = At::kStart;
  std::string name_, metadata_key_;
  Entry* entry_ = nullptr;
};

// Elements times their size; nothing where that exceeds 64 bits.
std::optional<uint64_t> bytes_of(std::span<const int64_t> shape, DType dtype) {
  uint64_t total = size_of(dtype);
  for (const int64_t side : shape)
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(side), &total)) return std::nullopt;
  return total;
}

Header read_header(std::string_view text, std::string_view file) {
  if (!text.starts_with('{'))
    throw input_error("{}: expected a header that begins with '{{'", printable(file, 300));
  // The parser takes a zero byte for the end of its input; in JSON there is none.
  if (text.find('\0') != text.npos)
    throw input_error("{}: the header holds a zero byte", printable(file, 300));
  HeaderReader reader(file);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace

TensorTable read_safetensors(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  return safetensors_from_bytes(file->bytes(), file, path);
}

TensorTable safetensors_from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                   std::string_view name) {
  const std::string file = printable(name, 300);
  uint64_t header_size = 0;
  if (bytes.size() < sizeof(header_size))
    throw input_error("{}: expected a safetensors file of at least 8 bytes, found {}", file, bytes.size());
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  if (header_size > kMostHeaderBytes)
    throw input_error("{}: expected a header of at most {} bytes, found {}", file, kMostHeaderBytes,
                      header_size);
  if (header_size > bytes.size() - sizeof(header_size))
    throw input_error("{}: expected a header of {} bytes, found {} bytes in all: the file is cut off", file,
                      header_size, bytes.size());
  const auto data = bytes.subspan(sizeof(header_size) + header_size);
  Header header =
      read_header({reinterpret_cast<const char*>(bytes.data()) + sizeof(header_size), header_size}, name);

  struct Range {
    uint64_t begin, end;
    const std::string* name;
  };
  std::vector<Range> ranges;
  TensorTable table;
  table.source = name;
  if (header.metadata) table.metadata = std::move(*header.metadata);
  for (auto& [tensor, entry] : header.entries) {
    const uint64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
    const auto needed = bytes_of(*entry.shape, *entry.dtype);
    if (!needed)
      throw input_error("{}: tensor '{}': shape {} has more bytes than 64 bits can count", file,
                        printable(tensor), text_from_shape(*entry.shape));
    if (begin > end || end > data.size())
      throw input_error("{}: tensor '{}': expected data_offsets within the {} bytes of data, found [{}, {}]",
                        file, printable(tensor), data.size(), begin, end);
    if (end - begin != *needed)
      throw input_error("{}: tensor '{}': {} {} takes {} bytes, data_offsets hold {}", file,
                        printable(tensor), name_of(*entry.dtype), text_from_shape(*entry.shape), *needed,
                        end - begin);
    ranges.push_back({begin, end, &tensor});
    table.tensors.emplace(
        tensor, TensorView{*entry.dtype, std::move(*entry.shape), data.subspan(begin, end - begin), owner});
  }

  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t expected = 0;
  for (const Range& range : ranges) {
    if (range.begin != expected)
      throw input_error("{}: tensor '{}': expected it to begin at {}, found {}: {}", file,
                        printable(*range.name), expected, range.begin,
                        range.begin < expected ? "tensors overlap" : "there is a hole before it");
    expected = range.end;
  }
  if (expected != data.size())
    throw input_error("{}: the tensors end at {}, the data at {}: bytes are left over", file, expected,
                      data.size());
  return table;
}

void write_safetensors(const std::string& path, const TensorTable& table) {
  const std::string file = printable(path, 300);
  const auto quoted = [&](const std::string& text) {
    try {
      return nlohmann::json(text).dump();
    } catch (const nlohmann::json::exception&) {
      throw input_error("{}: cannot write '{}': it is not UTF-8", file, printable(text));
    }
  };

  using Item = std::pair<const std::string, TensorView>;
  std::vector<const Item*> items;
  for (const Item& item : table.tensors) {
    const auto& [name, view] = item;
    if (name == kMetadataKey) throw input_error("{}: a tensor cannot be called '{}'", file, kMetadataKey);
    if (name.size() > kMostNameBytes)
      throw input_error("{}: expected names of at most {} bytes, found '{}'", file, kMostNameBytes,
                        printable(name));
    if (bytes_of(view.shape, view.dtype) != view.bytes.size())
      throw input_error("{}: tensor '{}': {} {} does not take the {} bytes it has", file, printable(name),
                        name_of(view.dtype), text_from_shape(view.shape), view.bytes.size());
    items.push_back(&item);
  }
  std::stable_sort(items.begin(), items.end(), [](const Item* a, const Item* b) {
    return size_of(a->second.dtype) > size_of(b->second.dtype);  // the table is sorted by name already
  });

  std::string header = "{";
  const auto comma = [&] { return header.size() > 1 ? "," : ""; };
  if (!table.metadata.empty()) {
    std::string pairs;
    for (const auto& [key, value] : table.metadata)
      pairs += fmt::format("{}{}:{}", pairs.empty() ? "" : ",", quoted(key), quoted(value));
    header += fmt::format("\"{}\":{{{}}}", kMetadataKey, pairs);
  }
  uint64_t begin = 0;
  for (const Item* item : items) {
    const auto& [name, view] = *item;
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", comma(),
                          quoted(name), name_of(view.dtype), fmt::join(view.shape, ","), begin,
                          begin + view.bytes.size());
    begin += view.bytes.size();
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t header_size = header.size();
  if (header_size > kMostHeaderBytes)
    throw input_error("{}: expected a header of at most {} bytes, found {}", file, kMostHeaderBytes,
                      header_size);

  write_file_atomically(path, [&](const ByteSink& sink) {
    sink(std::as_bytes(std::span(&header_size, 1)));
    sink(std::as_bytes(std::span(header)));
    for (const Item* item : items) sink(item->second.bytes);
  });
}

}  // namespace aha
