#include "aha/base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "aha/base/error.h"

namespace aha {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_regular(const std::string& path, struct stat& info) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw input_error("{}: cannot open: {}", printable(path, 300), std::strerror(errno));
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    throw input_error("{}: expected a file, found {}", printable(path, 300),
                      S_ISDIR(info.st_mode) ? "a directory" : "something else");
  }
  return fd;
}

// After a loss of power a renamed file is there only if its folder was flushed too. Some file systems cannot
// do that; the file is complete all the same.
void flush_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) ::fsync(fd.get());
}

}  // namespace

std::string read_file(const std::string& path, uint64_t most_bytes) {
  struct stat info {};
  const Descriptor fd(open_regular(path, info));
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > most_bytes)
    throw input_error("{}: expected at most {} bytes, found {}", printable(path, 300), most_bytes, size);
  std::string content(size, '\0');
  size_t have = 0;
  while (have < size) {
    const ssize_t got = ::read(fd.get(), content.data() + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw input_error("{}: cannot read: {}", printable(path, 300), std::strerror(errno));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  content.resize(have);
  return content;
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  struct stat info {};
  const Descriptor fd(open_regular(path, info));
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;
  void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) throw input_error("{}: cannot map: {}", printable(path, 300), std::strerror(errno));
  data_ = static_cast<const std::byte*>(at);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

void write_file_atomically(const std::string& path, const std::function<void(const ByteSink&)>& produce) {
  static std::atomic<uint64_t> counter{0};
  const std::string part = fmt::format("{}.part-{}-{}", path, ::getpid(), counter++);
  Descriptor fd(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd.get() < 0) throw input_error("{}: cannot write: {}", printable(path, 300), std::strerror(errno));
  try {
    const auto failed = [&](const char* what) {
      return work_error("{}: cannot {}: {}", printable(path, 300), what, std::strerror(errno));
    };
    produce([&](std::span<const std::byte> bytes) {
      while (!bytes.empty()) {
        const ssize_t put = ::write(fd.get(), bytes.data(), bytes.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) throw failed("write");
        bytes = bytes.subspan(static_cast<size_t>(put));
      }
    });
    if (::fsync(fd.get()) != 0 && errno != EINVAL) throw failed("flush");
    if (::close(fd.release()) != 0) throw failed("close");
    if (::rename(part.c_str(), path.c_str()) != 0) throw failed("rename");
    flush_folder_of(path);
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, [&](const ByteSink& sink) { sink(std::as_bytes(std::span(content))); });
}

void make_directories(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code || !std::filesystem::is_directory(path, code))
    throw input_error("{}: cannot make this directory{}", printable(path, 300),
                      code ? ": " + code.message() : "");
}

std::string sha256_of_file(const std::string& path) {
  return sha256_of_bytes(MappedFile(path).bytes());
}

std::string without_folders(const std::string& spec) {
  size_t end = spec.find_last_not_of('/');
  if (end == std::string::npos) return spec;
  const size_t slash = spec.rfind('/', end);
  if (slash == std::string::npos) return spec;
  const size_t colon = spec.find(':');
  const std::string word = colon < slash ? spec.substr(0, colon + 1) : "";
  return word + spec.substr(slash + 1, end - slash);
}

}  // namespace aha
