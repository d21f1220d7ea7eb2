// The zip part of npy.h.
#include <zlib.h>

#include <algorithm>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/npy.h"
#include "aha/base/zip.h"

namespace aha {
namespace {

constexpr uint64_t kMostMemberBytes = uint64_t{1} << 32;

std::vector<std::byte> inflated(const ZipMember& member, const std::string& name) {
  const auto [packed, checksum, size, method] = member;
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
  if (!whole || crc32_z(0, reinterpret_cast<const Bytef*>(plain.data()), plain.size()) != checksum)
    throw input_error("{}: a compressed member is damaged", name);
  return plain;
}

}  // namespace

std::map<std::string, NpyArray> npz_from_bytes(std::span<const std::byte> bytes, const std::string& path) {
  const ZipArchive archive = zip_from_bytes(bytes, path, ZipMethod::kDeflated);
  check_crc(archive);
  std::map<std::string, NpyArray> arrays;
  for (const auto& [file, member] : archive.members) {
    const std::string name = fmt::format("{}:{}", printable(path, 300), printable(file));
    const std::string key = file.ends_with(".npy") ? file.substr(0, file.size() - 4) : file;
    arrays[key] = member.method == ZipMethod::kDeflated ? npy_from_bytes(inflated(member, name), name)
                                                        : npy_from_bytes(member.bytes, name);
  }
  return arrays;
}

std::map<std::string, NpyArray> read_npz(const std::string& path) {
  const MappedFile file(path);
  return npz_from_bytes(file.bytes(), path);
}

}  // namespace aha
