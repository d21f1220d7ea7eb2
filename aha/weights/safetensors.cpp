#include "aha/weights/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

constexpr uint64_t kMostHeaderBytes = 100'000'000;
constexpr size_t kMostNames = 1'000'000;
constexpr size_t kMostNameBytes = 4096;
constexpr size_t kMostRank = 16;
constexpr std::string_view kMetadataKey = "__metadata__";

// Sees the header while it is parsed and refuses names that occur twice and whatever would make something
// deep or large.
struct HeaderGuard {
  std::string file, entry = {};         // the file, and the name that was read last
  std::set<std::string> names[2] = {};  // of the header, and within one entry
  size_t items = 0;                     // of one array

  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if ((event == Event::object_start && depth > 1) || (event == Event::array_start && depth != 2))
      throw input_error("{}: header entry '{}': found {} where none belongs", file, printable(entry),
                        event == Event::array_start ? "an array" : "an object");
    if (event == Event::object_start && depth == 1) names[1].clear();
    if (event == Event::array_start) items = 0;
    if (event == Event::value && depth == 3 && ++items > kMostRank)
      throw input_error("{}: tensor '{}': expected at most {} dimensions, found more", file, printable(entry),
                        kMostRank);
    if (event != Event::key) return true;
    const auto& name = parsed.get_ref<const std::string&>();
    if (name.size() > kMostNameBytes)
      throw input_error("{}: expected names of at most {} bytes, found one of {}", file, kMostNameBytes,
                        name.size());
    if (names[depth - 1].size() >= kMostNames)
      throw input_error("{}: expected at most {} names, found more", file, kMostNames);
    if (!names[depth - 1].insert(name).second)
      throw input_error("{}: '{}' occurs twice", file, printable(depth == 1 ? name : entry + "." + name));
    if (depth == 1) entry = name;
    return true;
  }
};

// Elements times their size; nothing where that exceeds 64 bits.
std::optional<uint64_t> bytes_of(std::span<const int64_t> shape, DType dtype) {
  uint64_t total = size_of(dtype);
  for (const int64_t side : shape)
    if (side < 0 || __builtin_mul_overflow(total, static_cast<uint64_t>(side), &total)) return std::nullopt;
  return total;
}

nlohmann::json parsed_header(std::string_view text, const std::string& file) {
  if (!text.starts_with('{')) throw input_error("{}: expected a header that begins with '{{'", file);
  // The parser takes a zero byte for the end of its input; in JSON there is none.
  if (text.find('\0') != text.npos) throw input_error("{}: the header holds a zero byte", file);
  try {
    return nlohmann::json::parse(text.begin(), text.end(), HeaderGuard{file});
  } catch (const nlohmann::json::exception& error) {
    throw input_error("{}: the header is not valid JSON: {}", file, printable(error.what(), 400));
  }
}

// A tensor's entry as the format has it.
void check_entry(const nlohmann::json& entry, const std::string& where) {
  const auto numbers = [&](const char* key) {
    const auto found = entry.find(key);
    return found != entry.end() && found->is_array() &&
           std::ranges::all_of(*found, [](const auto& item) { return item.is_number_unsigned(); });
  };
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !numbers("shape") || !numbers("data_offsets") || entry["data_offsets"].size() != 2)
    throw input_error(
        "{}: expected dtype, shape and data_offsets [begin, end], a text and non-negative integers, found {}",
        where, printable(entry.dump(), 200));
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
  const nlohmann::json header =
      parsed_header({reinterpret_cast<const char*>(bytes.data()) + sizeof(header_size), header_size}, file);

  struct Range {
    uint64_t begin, end;
    std::string name;
  };
  std::vector<Range> ranges;
  TensorTable table;
  table.source = name;
  for (const auto& [tensor, entry] : header.items()) {
    const std::string where = fmt::format("{}: tensor '{}'", file, printable(tensor));
    if (tensor == kMetadataKey) {
      const auto is_text = [](const nlohmann::json& value) { return value.is_string(); };
      if (!entry.is_object() || !std::ranges::all_of(entry, is_text))
        throw input_error("{}: {}: expected text for every key, found {}", file, tensor,
                          printable(entry.dump(), 200));
      table.metadata = entry.get<std::map<std::string, std::string>>();
      continue;
    }
    check_entry(entry, where);
    const DType dtype = dtype_from_name(entry["dtype"].get<std::string>(), where);
    const uint64_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    auto shape = entry["shape"].get<std::vector<int64_t>>();
    const auto needed = bytes_of(shape, dtype);
    if (!needed)
      throw input_error("{}: shape {} has more bytes than 64 bits can count", where, entry["shape"].dump());
    if (begin > end || end > data.size())
      throw input_error("{}: expected data_offsets within the {} bytes of data, found [{}, {}]", where,
                        data.size(), begin, end);
    if (end - begin != *needed)
      throw input_error("{}: {} {} takes {} bytes, data_offsets hold {}", where, name_of(dtype),
                        text_from_shape(shape), *needed, end - begin);
    ranges.push_back({begin, end, tensor});
    table.tensors.emplace(tensor,
                          TensorView{dtype, std::move(shape), data.subspan(begin, end - begin), owner});
  }

  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t expected = 0;
  for (const Range& range : ranges) {
    if (range.begin != expected)
      throw input_error("{}: tensor '{}': expected it to begin at {}, found {}: {}", file,
                        printable(range.name), expected, range.begin,
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
