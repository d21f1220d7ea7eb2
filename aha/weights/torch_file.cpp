#include "aha/weights/torch_file.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <unordered_map>

#include "aha/base/byte_reader.h"
#include "aha/base/error.h"
#include "aha/base/zip.h"
#include "aha/weights/unpickler.h"

namespace aha {
namespace {

struct StorageType {
  std::string_view name;
  DType dtype;
};
constexpr StorageType kStorageTypes[] = {
    {"FloatStorage", DType::kF32},  {"HalfStorage", DType::kF16}, {"BFloat16Storage", DType::kBF16},
    {"DoubleStorage", DType::kF64}, {"LongStorage", DType::kI64}, {"IntStorage", DType::kI32},
    {"ShortStorage", DType::kI16},  {"CharStorage", DType::kI8},  {"ByteStorage", DType::kU8},
    {"BoolStorage", DType::kBool},
};

// In the order of preference: averaged weights before the raw ones, as timm chooses.
constexpr std::string_view kWrappers[] = {"state_dict_ema", "state_dict", "model", "teacher"};
constexpr int kMostWrappers = 4;

constexpr std::string_view kLegacyMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kLegacyProtocol = 1001;
constexpr size_t kMostTorchRank = 16;
constexpr uint64_t kMostCopies = 4;  // strided copies may take this many times the file

struct StorageId {
  std::string key;
  DType dtype = DType::kF32;
  uint64_t numel = 0;
};

// Where the bytes of a storage are; the two containers differ in nothing else.
using StorageFinder = std::function<std::span<const std::byte>(const StorageId&)>;
using Entries = std::vector<std::pair<PickleRef, PickleRef>>;

bool is_global(PickleRef value, std::string_view module, std::string_view name) {
  const auto* global = value->get<PickleGlobal>();
  return global && global->module == module && global->name == name;
}

// The arguments of a call of that global, null for anything else.
const std::vector<PickleRef>* arguments_of_call(PickleRef value, std::string_view module,
                                                std::string_view name) {
  const auto* object = value->get<PickleObject>();
  if (!object || !is_global(object->callee, module, name)) return nullptr;
  return &object->arguments->get<PickleTuple>()->items;
}

// The entries of a dict or an OrderedDict. Python 2 wrote the latter as a call with a list of [key, value]
// lists.
std::optional<Entries> entries_of(PickleRef value) {
  if (const auto* dict = value->get<PickleDict>()) return dict->items;
  const auto* arguments = arguments_of_call(value, "collections", "OrderedDict");
  if (!arguments) return std::nullopt;
  Entries entries;
  if (const auto* pairs = arguments->size() == 1 ? arguments->front()->get<PickleList>() : nullptr) {
    for (const PickleRef pair : pairs->items) {
      const auto* items = pair->get<PickleList>();
      if (!items || items->items.size() != 2) return std::nullopt;
      entries.emplace_back(items->items[0], items->items[1]);
    }
  }
  const auto& set = value->get<PickleObject>()->entries;
  entries.insert(entries.end(), set.begin(), set.end());
  return entries;
}

std::optional<Entries> entry_that_is_dict(const Entries& entries, std::string_view name) {
  for (const auto& [key, value] : entries)
    if (const auto* text = key->get<std::string>(); text && *text == name) return entries_of(value);
  return std::nullopt;
}

class StateDictReader {
 public:
  StateDictReader(std::string_view name, uint64_t file_bytes, std::shared_ptr<const void> owner,
                  StorageFinder find)
      : file_(printable(name, 300)),
        file_bytes_(file_bytes),
        owner_(std::move(owner)),
        find_(std::move(find)) {
    table_.source = name;
  }

  TensorTable read(PickleRef root) {
    auto entries = entries_of(root);
    if (!entries) throw input_error("{}: expected a dict of tensors, found {}", file_, describe(root));
    const std::string way = unwrap(*entries);
    if (!way.empty()) table_.metadata["unwrapped"] = way;
    std::vector<std::string> skipped;
    for (const auto& [key, value] : *entries) {
      const auto* name = key->get<std::string>();
      if (!name)
        throw input_error("{}: expected texts as the names of tensors, found {}", file_, describe(key));
      if (auto view = tensor_from(*name, value)) {
        if (!table_.tensors.try_emplace(*name, std::move(*view)).second)
          throw input_error("{}: tensor '{}' occurs twice", file_, printable(*name));
      } else if (value->get<PickleObject>() && !entries_of(value)) {
        throw input_error("{}: '{}': expected a tensor, found {}, which is not run", file_, printable(*name),
                          describe(value));
      } else {
        skipped.push_back(*name);
      }
    }
    if (table_.tensors.empty())
      throw input_error("{}: expected a dict of tensors, found none in it; its entries: {}", file_,
                        list_some(skipped));
    if (!skipped.empty()) table_.metadata["skipped"] = list_some(skipped, 100);
    return std::move(table_);
  }

 private:
  static std::string unwrap(Entries& entries) {
    std::string way;
    for (int depth = 0; depth < kMostWrappers; ++depth) {
      const auto inner_of = [&](std::string_view name) { return entry_that_is_dict(entries, name); };
      const auto* wrapper = std::find_if(std::begin(kWrappers), std::end(kWrappers),
                                         [&](std::string_view name) { return inner_of(name).has_value(); });
      if (wrapper == std::end(kWrappers)) break;
      entries = *inner_of(*wrapper);
      way += fmt::format("{}{}", way.empty() ? "" : ".", *wrapper);
    }
    return way;
  }

  // Nothing where the value is no tensor.
  std::optional<TensorView> tensor_from(const std::string& name, PickleRef value) {
    for (const char* wrapper : {"_rebuild_parameter", "_rebuild_parameter_with_state"})
      if (const auto* arguments = arguments_of_call(value, "torch._utils", wrapper)) {
        if (arguments->empty()) throw bad_tensor(name, "a parameter without its tensor");
        value = arguments->front();
      }
    const auto* arguments = arguments_of_call(value, "torch._utils", "_rebuild_tensor_v2");
    if (!arguments) arguments = arguments_of_call(value, "torch._utils", "_rebuild_tensor");
    if (!arguments) return std::nullopt;
    if (arguments->size() < 4) throw bad_tensor(name, "fewer than four arguments");
    const StorageId id = storage_from(name, (*arguments)[0]);
    const auto* offset = (*arguments)[1]->get<int64_t>();
    if (!offset || *offset < 0) throw bad_tensor(name, "an offset that is no natural number");
    return view_of(name, id, static_cast<uint64_t>(*offset), numbers_from(name, (*arguments)[2]),
                   numbers_from(name, (*arguments)[3]));
  }

  StorageId storage_from(const std::string& name, PickleRef value) const;
  std::vector<int64_t> numbers_from(const std::string& name, PickleRef value) const;
  TensorView view_of(const std::string& name, const StorageId& id, uint64_t offset,
                     std::vector<int64_t> shape, const std::vector<int64_t>& strides);

  Error bad_tensor(const std::string& name, std::string_view found) const {
    return input_error("{}: tensor '{}' is damaged: found {}", file_, printable(name), found);
  }

  std::string file_;
  uint64_t file_bytes_, copied_bytes_ = 0;
  std::shared_ptr<const void> owner_;
  StorageFinder find_;
  TensorTable table_;
};

// ("storage", torch.FloatStorage, "0", "cpu", numel), in the old container with the description of a view
// behind it, which must be None.
std::optional<StorageId> storage_id_from(const PicklePersistent& persistent) {
  const auto* tuple = persistent.id->get<PickleTuple>();
  if (!tuple || tuple->items.size() < 5 || tuple->items.size() > 6) return std::nullopt;
  const auto& items = tuple->items;
  const auto* kind = items[0]->get<std::string>();
  const auto* type = items[1]->get<PickleGlobal>();
  const auto* key = items[2]->get<std::string>();
  const auto* numel = items[4]->get<int64_t>();
  const bool whole = items.size() == 5 || items[5]->get<PickleNone>();
  if (!kind || *kind != "storage" || !type || type->module != "torch" || !key || !numel || *numel < 0 ||
      !whole)
    return std::nullopt;
  for (const auto& row : kStorageTypes)
    if (row.name == type->name) return StorageId{*key, row.dtype, static_cast<uint64_t>(*numel)};
  return std::nullopt;
}

StorageId StateDictReader::storage_from(const std::string& name, PickleRef value) const {
  const auto* persistent = value->get<PicklePersistent>();
  auto id = persistent ? storage_id_from(*persistent) : std::nullopt;
  if (!id)
    throw bad_tensor(name,
                     "a storage that is not described as PyTorch does, or of an unsupported element type");
  return *id;
}

std::vector<int64_t> StateDictReader::numbers_from(const std::string& name, PickleRef value) const {
  if (const auto* size = arguments_of_call(value, "torch", "Size"); size && size->size() == 1)
    value = size->front();
  const auto* tuple = value->get<PickleTuple>();
  if (!tuple || tuple->items.size() > kMostTorchRank)
    throw bad_tensor(name, "a shape that is no short tuple");
  std::vector<int64_t> out;
  for (const PickleRef item : tuple->items) {
    const auto* number = item->get<int64_t>();
    if (!number || *number < 0) throw bad_tensor(name, "a side or stride that is no natural number");
    out.push_back(*number);
  }
  return out;
}

struct Extent {
  uint64_t numel = 1;  // elements of the tensor
  uint64_t reach = 0;  // largest element index relative to its first
};

// Nothing where 64 bits do not suffice.
std::optional<Extent> extent_of(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  Extent extent;
  for (size_t i = 0; i < shape.size(); ++i)
    if (__builtin_mul_overflow(extent.numel, static_cast<uint64_t>(shape[i]), &extent.numel))
      return std::nullopt;
  if (extent.numel == 0) return extent;
  for (size_t i = 0; i < shape.size(); ++i) {
    uint64_t span = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(shape[i] - 1), static_cast<uint64_t>(strides[i]),
                               &span) ||
        __builtin_add_overflow(extent.reach, span, &extent.reach))
      return std::nullopt;
  }
  return extent;
}

bool is_row_major(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t expected = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

// The strided elements in row-major order.
std::vector<std::byte> gathered(std::span<const std::byte> storage, size_t size, uint64_t offset,
                                uint64_t numel, std::span<const int64_t> shape,
                                std::span<const int64_t> strides) {
  std::vector<std::byte> out(numel * size);
  std::vector<int64_t> index(shape.size(), 0);
  uint64_t at = offset;
  for (uint64_t i = 0; i < numel; ++i) {
    std::memcpy(out.data() + i * size, storage.data() + at * size, size);
    for (size_t d = shape.size(); d-- > 0;) {
      at += static_cast<uint64_t>(strides[d]);
      if (++index[d] < shape[d]) break;
      at -= static_cast<uint64_t>(strides[d]) * static_cast<uint64_t>(shape[d]);
      index[d] = 0;
    }
  }
  return out;
}

TensorView StateDictReader::view_of(const std::string& name, const StorageId& id, uint64_t offset,
                                    std::vector<int64_t> shape, const std::vector<int64_t>& strides) {
  const size_t size = size_of(id.dtype);
  const auto storage = find_(id);
  if (shape.size() != strides.size()) throw bad_tensor(name, "a shape and strides of different length");
  const auto extent = extent_of(shape, strides);
  if (!extent) throw bad_tensor(name, "a shape that 64 bits cannot count");
  if (extent->numel == 0) return {id.dtype, std::move(shape), {}, owner_};
  if (offset >= id.numel || extent->reach >= id.numel - offset)
    throw input_error(
        "{}: tensor '{}': {} at offset {} with strides {} reaches beyond its storage of {} elements", file_,
        printable(name), text_from_shape(shape), offset, text_from_shape(strides), id.numel);
  if (is_row_major(shape, strides))
    return {id.dtype, std::move(shape), storage.subspan(offset * size, extent->numel * size), owner_};
  // A stride of zero could ask for any amount of memory.
  copied_bytes_ += std::min(extent->numel, id.numel) * size;
  if (extent->numel > id.numel || copied_bytes_ > kMostCopies * file_bytes_)
    throw input_error(
        "{}: tensor '{}': {} repeats elements of a storage of {} elements, which is not supported", file_,
        printable(name), text_from_shape(shape), id.numel);
  auto owned = std::make_shared<const std::vector<std::byte>>(
      gathered(storage, size, offset, extent->numel, shape, strides));
  return {id.dtype, std::move(shape), *owned, owned};
}

uint64_t bytes_of_storage(const StorageId& id, const std::string& file) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(id.numel, uint64_t{size_of(id.dtype)}, &bytes))
    throw input_error("{}: storage '{}' has more bytes than 64 bits can count", file, printable(id.key));
  return bytes;
}

TensorTable table_from_zip(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                           std::string_view name) {
  const std::string file = printable(name, 300);
  const ZipArchive archive = zip_from_bytes(bytes, name);
  std::vector<std::string> tops;  // the one folder, with its slash
  for (const auto& [member, view] : archive.members)
    if (member.ends_with("/data.pkl") && member.find('/') == member.size() - 9)
      tops.push_back(member.substr(0, member.size() - 8));
  if (tops.size() != 1)
    throw input_error("{}: expected a zip archive with one FOLDER/data.pkl, found {}", file, tops.size());
  const std::string& top = tops.front();
  if (archive.has(top + "constants.pkl"))
    throw input_error("{}: expected a state dict, found a TorchScript program", file);
  check_crc(archive);
  if (const auto order = archive.members.find(top + "byteorder"); order != archive.members.end()) {
    const auto text = order->second.bytes;
    const std::string_view found(reinterpret_cast<const char*>(text.data()), text.size());
    if (found != "little")
      throw input_error("{}: expected little-endian numbers, found '{}'", file, printable(found));
  }

  const PickleTree tree = tree_from_pickle(archive.members.at(top + "data.pkl").bytes, name);
  StateDictReader reader(name, bytes.size(), std::move(owner), [&](const StorageId& id) {
    const auto member = archive.members.find(top + "data/" + id.key);
    if (member == archive.members.end())
      throw input_error("{}: storage '{}' is missing", file, printable(id.key));
    const auto found = member->second.bytes;
    if (found.size() != bytes_of_storage(id, file))
      throw input_error("{}: storage '{}': expected {} elements of {}, found {} bytes", file,
                        printable(id.key), id.numel, name_of(id.dtype), found.size());
    return found;
  });
  return reader.read(tree.root);
}

// The pickles that follow one another in an old file.
class LegacyReader {
 public:
  LegacyReader(std::span<const std::byte> bytes, std::string_view name) : rest_(bytes), name_(name) {}

  PickleTree next() {
    PickleTree tree = tree_from_pickle(rest_, name_);
    rest_ = rest_.subspan(tree.consumed);
    return tree;
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
  std::string_view name_;
};

void check_legacy_opening(LegacyReader& reader, const std::string& file) {
  const PickleTree magic = reader.next();
  const auto* number = magic.root->get<PickleLong>();
  if (!number || number->little_endian != kLegacyMagic)
    throw input_error("{}: expected a file of torch.save, found a pickle of {}", file, describe(magic.root));
  const PickleTree protocol = reader.next();
  const auto* version = protocol.root->get<int64_t>();
  if (!version || *version != kLegacyProtocol)
    throw input_error("{}: expected version {} of the old PyTorch format, found {}", file, kLegacyProtocol,
                      version ? std::to_string(*version) : describe(protocol.root));
  const PickleTree system = reader.next();
  for (const auto& [key, value] : entries_of(system.root).value_or(Entries{}))
    if (const auto* text = key->get<std::string>(); text && *text == "little_endian")
      if (const auto* little = value->get<bool>(); !little || !*little)
        throw input_error("{}: expected little-endian numbers, found another order", file);
}

TensorTable table_from_legacy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                              std::string_view name) {
  const std::string file = printable(name, 300);
  LegacyReader reader(bytes, name);
  check_legacy_opening(reader, file);
  const PickleTree object = reader.next();
  const PickleTree keys = reader.next();

  // The storages behind the pickles state their length, not their type; that is in the object.
  std::unordered_map<std::string, StorageId> described;
  for (const PickleValue& value : object.values)
    if (const auto* persistent = value.get<PicklePersistent>())
      if (auto id = storage_id_from(*persistent)) {
        const auto [known, is_new] = described.try_emplace(id->key, *id);
        if (!is_new && (known->second.dtype != id->dtype || known->second.numel != id->numel))
          throw input_error("{}: storage '{}' is described in two ways", file, printable(id->key));
      }

  const auto* list = keys.root->get<PickleList>();
  if (!list) throw input_error("{}: expected a list of storages, found {}", file, describe(keys.root));
  const std::string where = file + ": the storages: the file";
  ByteReader storages(reader.rest(), where);
  std::unordered_map<std::string, std::span<const std::byte>> found;
  for (const PickleRef item : list->items) {
    const auto* key = item->get<std::string>();
    const auto id = key ? described.find(*key) : described.end();
    if (id == described.end())
      throw input_error("{}: storage '{}' has an unsupported element type or belongs to no tensor", file,
                        key ? printable(*key) : describe(item));
    const uint64_t numel = storages.u64();
    if (numel != id->second.numel)
      throw input_error("{}: storage '{}': expected {} elements, found {}", file, printable(*key),
                        id->second.numel, numel);
    if (!found.try_emplace(*key, storages.take(bytes_of_storage(id->second, file))).second)
      throw input_error("{}: storage '{}' occurs twice", file, printable(*key));
  }
  if (storages.left() != 0)
    throw input_error("{}: {} bytes are left over behind the storages", file, storages.left());

  StateDictReader state(name, bytes.size(), std::move(owner), [&](const StorageId& id) {
    const auto storage = found.find(id.key);
    if (storage == found.end()) throw input_error("{}: storage '{}' is missing", file, printable(id.key));
    return storage->second;
  });
  return state.read(object.root);
}

}  // namespace

TensorTable torch_file_from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                  std::string_view name) {
  const bool zip = bytes.size() >= 2 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'};
  return zip ? table_from_zip(bytes, std::move(owner), name)
             : table_from_legacy(bytes, std::move(owner), name);
}

}  // namespace aha
