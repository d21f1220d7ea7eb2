#include "aha/base/zip.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "aha/base/byte_reader.h"
#include "aha/base/error.h"
#include "aha/base/parallel.h"

namespace aha {
namespace {

constexpr uint32_t kLocalSign = 0x04034b50, kCentralSign = 0x02014b50, kEndSign = 0x06054b50;
constexpr uint32_t kEnd64Sign = 0x06064b50, kLocator64Sign = 0x07064b50;
constexpr size_t kEndSize = 22, kLocator64Size = 20, kEnd64Size = 56;
constexpr uint64_t kMostMembers = 1'000'000;
constexpr size_t kMostNameBytes = 4096;
constexpr uint32_t kIn64 = 0xffffffff;  // the value is in the zip64 field instead
constexpr uint16_t kFlagSizesFollow = 1 << 3, kFlagUtf8 = 1 << 11;
constexpr uint16_t kExtraZip64 = 1;

struct Directory {
  uint64_t members = 0, size = 0, offset = 0;
  uint64_t end = 0;  // where the records behind the directory begin
};

struct CentralHeader {
  std::string name;
  uint16_t flags = 0;
  uint32_t crc32 = 0;
  uint64_t size = 0, local_offset = 0;
};

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> bytes, std::string_view name)
      : bytes_(bytes), file_(printable(name, 300)) {}

  ZipArchive read(std::string_view source) {
    ZipArchive archive;
    archive.source = source;
    const Directory directory = find_directory();
    std::vector<std::pair<uint64_t, uint64_t>> extents;  // local header to end of data
    ByteReader reader(bytes_.subspan(directory.offset, directory.size), file_);
    for (uint64_t i = 0; i < directory.members; ++i) {
      const CentralHeader central = read_central(reader);
      const uint64_t data = data_offset(central, directory.offset);
      const auto [place, is_new] = archive.members.try_emplace(
          central.name, ZipMember{bytes_.subspan(data, central.size), central.crc32});
      if (!is_new) throw refused("member '{}' occurs twice", printable(central.name));
      extents.emplace_back(central.local_offset, data + central.size);
    }
    if (reader.left() != 0) throw refused("the directory has {} bytes left over", reader.left());
    std::sort(extents.begin(), extents.end());
    for (size_t i = 1; i < extents.size(); ++i)
      if (extents[i].first < extents[i - 1].second)
        throw refused("members overlap at byte {}", extents[i].first);
    return archive;
  }

 private:
  template <class... Args>
  Error refused(fmt::format_string<Args...> format, Args&&... args) const {
    return input_error("{}: {}", file_, fmt::format(format, std::forward<Args>(args)...));
  }

  ByteReader reader_at(uint64_t offset) const { return {bytes_.subspan(offset), file_}; }

  // The end record closes the file; its comment, at most 64 KiB, may come behind it.
  size_t find_end() const {
    for (size_t comment = 0; comment <= 0xffff && comment + kEndSize <= bytes_.size(); ++comment) {
      const size_t at = bytes_.size() - kEndSize - comment;
      ByteReader reader = reader_at(at);
      if (reader.u32() != kEndSign) continue;
      reader.take(kEndSize - 6);
      if (reader.u16() == comment) return at;
    }
    throw refused("a zip archive without its directory: the file is cut off");
  }

  Directory find_directory() const {
    const size_t end = find_end();
    ByteReader reader = reader_at(end);
    reader.take(4);
    const uint16_t disk = reader.u16(), directory_disk = reader.u16();
    const uint16_t here = reader.u16();
    Directory directory;
    directory.members = reader.u16();
    directory.size = reader.u32();
    directory.offset = reader.u32();
    directory.end = end;
    if (disk != 0 || directory_disk != 0 || here != directory.members)
      throw refused("a zip archive in several parts is not supported");
    if (end >= kLocator64Size && reader_at(end - kLocator64Size).u32() == kLocator64Sign)
      directory = find_directory64(end - kLocator64Size, directory);
    if (directory.members > kMostMembers)
      throw refused("expected at most {} members, found {}", kMostMembers, directory.members);
    if (directory.offset > directory.end || directory.size != directory.end - directory.offset)
      throw refused("expected the directory to end at byte {}, found it at {} with {} bytes", directory.end,
                    directory.offset, directory.size);
    return directory;
  }

  Directory find_directory64(size_t locator, const Directory& small) const {
    ByteReader reader = reader_at(locator);
    reader.take(4);
    const uint32_t disk = reader.u32();
    const uint64_t record = reader.u64();
    if (disk != 0 || reader.u32() > 1) throw refused("a zip archive in several parts is not supported");
    if (locator < kEnd64Size || record != locator - kEnd64Size)
      throw refused("expected the zip64 end record right before its locator, found it at byte {}", record);
    ByteReader end64 = reader_at(record);
    if (end64.u32() != kEnd64Sign) throw refused("the zip64 end record is missing");
    if (end64.u64() != kEnd64Size - 12) throw refused("the zip64 end record has an unknown size");
    end64.take(4);  // versions
    if (end64.u32() != 0 || end64.u32() != 0)
      throw refused("a zip archive in several parts is not supported");
    const uint64_t here = end64.u64();
    Directory directory;
    directory.members = end64.u64();
    directory.size = end64.u64();
    directory.offset = end64.u64();
    directory.end = record;
    const auto agrees = [](uint64_t small, uint64_t limit, uint64_t large) {
      return small == limit || small == large;
    };
    if (here != directory.members || !agrees(small.members, 0xffff, directory.members) ||
        !agrees(small.size, kIn64, directory.size) || !agrees(small.offset, kIn64, directory.offset))
      throw refused("the two end records contradict each other");
    return directory;
  }

  CentralHeader read_central(ByteReader& reader) const {
    if (reader.u32() != kCentralSign) throw refused("the directory is damaged");
    CentralHeader central;
    reader.take(4);  // versions
    central.flags = reader.u16();
    const uint16_t method = reader.u16();
    reader.take(4);  // time, date
    central.crc32 = reader.u32();
    uint64_t stored = reader.u32();
    central.size = reader.u32();
    const uint16_t name_size = reader.u16(), extra_size = reader.u16(), comment_size = reader.u16();
    const uint16_t disk = reader.u16();
    reader.take(6);  // attributes
    central.local_offset = reader.u32();
    central.name = reader.text(name_size);
    ByteReader extra(reader.take(extra_size), file_);
    reader.take(comment_size);

    read_zip64(extra, {&central.size, &stored, &central.local_offset});
    check_name(central.name);
    const std::string name = printable(central.name);
    if (disk != 0) throw refused("a zip archive in several parts is not supported");
    if (central.flags & ~(kFlagSizesFollow | kFlagUtf8))
      throw refused("member '{}' is encrypted or uses an unknown feature (flags {:#x})", name, central.flags);
    if (method != 0)
      throw refused("member '{}': expected a stored member, found compression method {}", name, method);
    if (stored != central.size)
      throw refused("member '{}': {} bytes stored, {} bytes stated", name, stored, central.size);
    return central;
  }

  // The zip64 field holds, in this order, only those values that did not fit into 32 bits.
  void read_zip64(ByteReader extra, std::initializer_list<uint64_t*> values) const {
    const bool needed =
        std::any_of(values.begin(), values.end(), [](const uint64_t* v) { return *v == kIn64; });
    if (!needed) return;
    while (extra.left() >= 4) {
      const uint16_t id = extra.u16(), size = extra.u16();
      ByteReader field(extra.take(size), file_);
      if (id != kExtraZip64) continue;
      for (uint64_t* value : values)
        if (*value == kIn64) *value = field.u64();
      return;
    }
    throw refused("a zip64 field is missing");
  }

  void check_name(const std::string& name) const {
    const bool climbs =
        name == ".." || name.starts_with("../") || name.ends_with("/..") || name.find("/../") != name.npos;
    const bool bad = name.empty() || name.size() > kMostNameBytes || name[0] == '/' || climbs ||
                     name.find('\\') != name.npos || name.find('\0') != name.npos;
    if (bad) throw refused("member name '{}' is not a plain relative path", printable(name));
  }

  // Where the member's bytes begin, after its local header has confirmed the directory.
  uint64_t data_offset(const CentralHeader& central, uint64_t directory_offset) const {
    const std::string name = printable(central.name);
    if (central.local_offset > directory_offset) throw refused("member '{}' lies outside the archive", name);
    ByteReader reader(bytes_.subspan(central.local_offset, directory_offset - central.local_offset), file_);
    if (reader.u32() != kLocalSign) throw refused("member '{}' has no header where the directory says", name);
    reader.take(2);  // version
    const uint16_t flags = reader.u16(), method = reader.u16();
    reader.take(4);  // time, date
    const uint32_t crc32 = reader.u32();
    uint64_t stored = reader.u32(), size = reader.u32();
    const uint16_t name_size = reader.u16(), extra_size = reader.u16();
    const bool same_name = reader.text(name_size) == central.name;
    ByteReader extra(reader.take(extra_size), file_);
    // A writer that streams leaves zeros here and states the numbers behind the data; the directory has them
    // anyway.
    const bool sizes_follow = (flags & kFlagSizesFollow) && crc32 == 0 && stored == 0 && size == 0;
    if (!sizes_follow) read_zip64(extra, {&size, &stored});
    const bool same_sizes =
        sizes_follow || (crc32 == central.crc32 && stored == central.size && size == central.size);
    if (!same_name || flags != central.flags || method != 0 || !same_sizes)
      throw refused("member '{}': its own header contradicts the directory", name);
    if (central.size > reader.left()) throw refused("member '{}' reaches beyond the archive", name);
    return central.local_offset + reader.position();
  }

  std::span<const std::byte> bytes_;
  std::string file_;
};

uint32_t crc32_of(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

ZipArchive zip_from_bytes(std::span<const std::byte> bytes, std::string_view name) {
  return ZipReader(bytes, name).read(name);
}

void check_crc(const ZipArchive& archive) {
  std::vector<const std::pair<const std::string, ZipMember>*> members;
  for (const auto& member : archive.members) members.push_back(&member);
  std::vector<uint32_t> found(members.size());
  parallel_for(static_cast<int64_t>(members.size()),
               [&](int64_t i, int) { found[i] = crc32_of(members[i]->second.bytes); });
  for (size_t i = 0; i < members.size(); ++i)
    if (found[i] != members[i]->second.crc32)
      throw input_error("{}: member '{}' is damaged: expected CRC-32 {:08x}, found {:08x}",
                        printable(archive.source, 300), printable(members[i]->first),
                        members[i]->second.crc32, found[i]);
}

}  // namespace aha
