// Arrays of float32 in numpy's .npz files, stored or deflated: reference values made elsewhere. Trusts the
// file.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>

#include "aha/base/byte_reader.h"
#include "aha/base/files.h"
#include "aha/base/npy.h"

namespace aha::checks {

inline std::string inflated(std::span<const std::byte> packed, size_t size) {
  std::string plain(size, '\0');
  z_stream stream{};
  inflateInit2(&stream, -MAX_WBITS);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(plain.data());
  stream.avail_out = static_cast<uInt>(plain.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  inflateEnd(&stream);
  return plain;
}

// The float32 ones, by member name without ".npy". Reads the directory at the end of the file: numpy leaves
// the sizes before a member open.
inline std::map<std::string, NpyArray> read_npz(const std::string& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  ByteReader end(bytes.subspan(bytes.size() - 22), path);
  end.take(10);
  const int members = end.u16();
  end.take(4);
  ByteReader directory(bytes.subspan(end.u32()), path);
  std::map<std::string, NpyArray> arrays;
  for (int i = 0; i < members; ++i) {
    directory.take(10);
    const int method = directory.u16();
    directory.take(8);
    const uint64_t packed_size = directory.u32(), size = directory.u32();
    const int name_size = directory.u16(), extra_size = directory.u16();
    directory.take(10);
    const uint64_t at = directory.u32();
    const std::string name(directory.text(name_size));
    directory.take(extra_size);
    ByteReader local(bytes.subspan(at), path);
    local.take(26);
    const int local_name = local.u16(), local_extra = local.u16();
    local.take(local_name + local_extra);
    const auto packed = local.take(packed_size);
    const std::string plain = method == 8
                                  ? inflated(packed, size)
                                  : std::string(reinterpret_cast<const char*>(packed.data()), packed.size());
    if (plain.substr(0, 128).find("'<f4'") == plain.npos) continue;
    arrays[name.substr(0, name.rfind('.'))] = npy_from_bytes(std::as_bytes(std::span(plain)), name);
  }
  return arrays;
}

}  // namespace aha::checks
