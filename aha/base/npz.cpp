// The zip part of npy.h: members are found through the central directory at the end of the file.
#include <zlib.h>

#include <algorithm>
#include <string_view>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/npy.h"

namespace aha {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kMostMemberBytes = uint64_t{1} << 32;

// Numbers of the archive, each checked against its end.
class ZipReader {
 public:
  ZipReader(Bytes bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  uint64_t number(uint64_t at, int size) const {
    const Bytes field = part(at, static_cast<uint64_t>(size));
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; --i)
      value = value << 8 | std::to_integer<uint64_t>(field[static_cast<size_t>(i)]);
    return value;
  }
  Bytes part(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at)
      throw input_error("{}: the archive is damaged or ends too early", name_);
    return bytes_.subspan(at, size);
  }
  uint64_t size() const { return bytes_.size(); }
  const std::string& name() const { return name_; }

 private:
  Bytes bytes_;
  std::string name_;
};

// The record that ends every archive; up to 64 KiB of comment may follow it.
uint64_t end_record(const ZipReader& zip) {
  constexpr uint64_t kRecord = 22, kComment = 0xFFFF;
  if (zip.size() >= kRecord)
    for (uint64_t at = zip.size() - kRecord, tries = 0; tries <= kComment; ++tries, --at) {
      if (zip.number(at, 4) == 0x06054b50) return at;
      if (at == 0) break;
    }
  throw input_error("{}: expected a .npz archive, found no zip directory", zip.name());
}

std::vector<std::byte> inflated(Bytes packed, uint64_t size, const std::string& name) {
  if (size > kMostMemberBytes || size / 1032 > packed.size())  // deflate shrinks to 1/1032 at best
    throw input_error("{}: a member claims {} bytes from {}", name, size, packed.size());
  std::vector<std::byte> plain(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  // zlib counts in 32 bits: both sides are handed over in pieces.
  constexpr size_t kPiece = size_t{1} << 30;
  size_t taken = 0, given = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      const size_t piece = std::min(kPiece, packed.size() - taken);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + taken));
      stream.avail_in = static_cast<uInt>(piece);
      taken += piece;
    }
    if (stream.avail_out == 0) {
      const size_t piece = std::min(kPiece, plain.size() - given);
      stream.next_out = reinterpret_cast<Bytef*>(plain.data() + given);
      stream.avail_out = static_cast<uInt>(piece);
      given += piece;
    }
    status = inflate(&stream, Z_NO_FLUSH);
  }
  const bool whole = status == Z_STREAM_END && stream.total_out == size;
  inflateEnd(&stream);
  if (!whole) throw input_error("{}: a compressed member is damaged", name);
  return plain;
}

// One entry of the central directory.
struct Member {
  std::string name;
  uint64_t method, checksum, packed_size, size, offset, next;
};

Member member_at(const ZipReader& zip, uint64_t at) {
  if (zip.number(at, 4) != 0x02014b50)
    throw input_error("{}: the archive's directory is damaged", zip.name());
  Member member{};
  member.method = zip.number(at + 10, 2);
  member.checksum = zip.number(at + 16, 4);
  member.packed_size = zip.number(at + 20, 4);
  member.size = zip.number(at + 24, 4);
  member.offset = zip.number(at + 42, 4);
  const uint64_t name_size = zip.number(at + 28, 2), extra_size = zip.number(at + 30, 2),
                 comment_size = zip.number(at + 32, 2);
  const Bytes name = zip.part(at + 46, name_size);
  member.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  member.next = at + 46 + name_size + extra_size + comment_size;
  // Zip64: fields that are all ones are found, in this order, in the extra field 0x0001.
  uint64_t extra = at + 46 + name_size;
  const uint64_t extra_end = extra + extra_size;
  while (extra + 4 <= extra_end) {
    const uint64_t kind = zip.number(extra, 2), length = zip.number(extra + 2, 2);
    uint64_t field = extra + 4;
    if (kind == 1)
      for (uint64_t* value : {&member.size, &member.packed_size, &member.offset})
        if (*value == 0xFFFFFFFF && field + 8 <= extra + 4 + length) {
          *value = zip.number(field, 8);
          field += 8;
        }
    extra += 4 + length;
  }
  return member;
}

NpyArray array_of(const ZipReader& zip, const Member& member) {
  const std::string name = fmt::format("{}:{}", zip.name(), printable(member.name));
  if (zip.number(member.offset, 4) != 0x04034b50)
    throw input_error("{}: the member is not where the directory says", name);
  const uint64_t data =
      member.offset + 30 + zip.number(member.offset + 26, 2) + zip.number(member.offset + 28, 2);
  const Bytes packed = zip.part(data, member.packed_size);
  std::vector<std::byte> held;
  Bytes plain = packed;
  if (member.method == 8) {
    held = inflated(packed, member.size, name);
    plain = held;
  } else if (member.method != 0) {
    throw input_error("{}: expected a stored or deflated member, found zip method {}", name, member.method);
  }
  if (crc32_z(0, reinterpret_cast<const Bytef*>(plain.data()), plain.size()) != member.checksum)
    throw input_error("{}: the checksum is wrong", name);
  return npy_from_bytes(plain, name);
}

}  // namespace

std::map<std::string, NpyArray> npz_from_bytes(std::span<const std::byte> bytes, const std::string& path) {
  const ZipReader zip(bytes, printable(path, 300));
  const uint64_t end = end_record(zip);
  const uint64_t members = zip.number(end + 10, 2);
  uint64_t at = zip.number(end + 16, 4);
  std::map<std::string, NpyArray> arrays;
  for (uint64_t i = 0; i < members; ++i) {
    const Member member = member_at(zip, at);
    std::string name = member.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays[name] = array_of(zip, member);
    at = member.next;
  }
  return arrays;
}

std::map<std::string, NpyArray> read_npz(const std::string& path) {
  const MappedFile file(path);
  return npz_from_bytes(file.bytes(), path);
}

}  // namespace aha
