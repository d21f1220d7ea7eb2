#include "aha/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = ".lock";

std::vector<std::string> missing_folders(const std::string& folder) {
  std::vector<std::string> missing;
  std::error_code code;
  for (fs::path at = fs::path(folder).lexically_normal(); !at.empty() && !fs::exists(at, code);) {
    if (at.has_filename()) missing.push_back(at.string());
    if (at == at.parent_path()) break;
    at = at.parent_path();
  }
  std::reverse(missing.begin(), missing.end());
  return missing;
}

std::string owner_of(int fd) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size() - 1, 0);
  std::string pid(text.data(), got > 0 ? static_cast<size_t>(got) : 0);
  pid.erase(std::find_if(pid.begin(), pid.end(), [](char c) { return c < '0' || c > '9'; }), pid.end());
  return pid.empty() ? "another process" : "process " + pid;
}

// The one before removes its file as it ends: what was opened may no longer be what others will open.
bool is_still_at(int fd, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

}  // namespace

FolderLock::FolderLock(const std::string& folder)
    : file_((fs::path(folder) / kLockFile).string()), made_(missing_folders(folder)) {
  make_directories(folder);
  for (;;) {
    fd_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) throw input_error("{}: cannot write: {}", printable(folder, 300), std::strerror(errno));
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) {
      if (is_still_at(fd_, file_)) break;
    } else if (errno == EWOULDBLOCK) {
      const std::string owner = owner_of(fd_);
      ::close(fd_);
      throw input_error("{}: expected a folder that nobody works in, found {} there", printable(folder, 300),
                        owner);
    } else if (errno != EINTR) {
      break;  // no locks here
    }
    ::close(fd_);
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, pid.data(), pid.size(), 0) < 0)
    return;  // locked all the same
}

FolderLock::~FolderLock() {
  ::unlink(file_.c_str());
  ::close(fd_);
  for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) ::rmdir(folder->c_str());
}

bool holds_files(const std::string& folder) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    if (name != kLockFile && name.find(".part-") == std::string::npos && !entry.is_directory(code))
      return true;
  }
  return false;
}

std::unique_ptr<FolderLock> enter_folder(const std::string& folder, const std::vector<std::string>& known_by,
                                         std::string_view what, bool overwrite) {
  auto lock = std::make_unique<FolderLock>(folder);
  const bool own = std::any_of(known_by.begin(), known_by.end(),
                               [&](const std::string& name) { return fs::exists(fs::path(folder) / name); });
  if (!own && !overwrite && holds_files(folder))
    throw input_error(
        "{}: expected an empty folder or one of {}, found other files; --overwrite writes among "
        "them",
        printable(folder, 300), what);
  return lock;
}

}  // namespace aha
