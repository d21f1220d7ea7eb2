// Files as a user expects them: read whole with a limit, written whole or not at all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace aha {

// The whole file; a missing, unreadable or larger one is an input error that names it.
std::string read_file(const std::string& path, uint64_t most_bytes = uint64_t{1} << 32);

// Read-only view of a file through mmap; the mapping lives as long as the object.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Writes beside the target, flushes, renames: a reader sees the old file or the new one, never a part. The
// temporary file is removed on failure.
void write_file_atomically(const std::string& path, std::string_view content);
// The same for content that is produced piece by piece.
using ByteSink = std::function<void(std::span<const std::byte>)>;
void write_file_atomically(const std::string& path, const std::function<void(const ByteSink&)>& produce);

void make_directories(const std::string& path);

// A path or `word:path` without its folders, for what is shown to others: list:/home/me/fit.csv ->
// list:fit.csv
std::string without_folders(const std::string& spec);

std::string sha256_of_bytes(std::span<const std::byte> bytes);  // 64 hex digits
std::string sha256_of_file(const std::string& path);

}  // namespace aha
