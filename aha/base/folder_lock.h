// One process at a time in a run's folder.
//
// The lock is the kernel's (flock on FOLDER/.lock, which holds the owner's process id), so it ends with its
// process however that ends: a file that a killed run left behind blocks nobody. Where a file system has no
// such locks, the run goes on without one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace aha {

class FolderLock {
 public:
  // Makes the folder where there is none. Input error that names the process that has it.
  explicit FolderLock(const std::string& folder);
  // Removes its file, and the folders it made where nothing was put into them.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::string file_;
  std::vector<std::string> made_;  // folders, outermost first
  int fd_ = -1;
};

// Whether a folder is there and holds a file; a lock, half-written files and folders in it do not count.
bool holds_files(const std::string& folder);

// The lock of a folder for results. Input error where it holds files, but none of those by which a folder of
// `what` is known, and `overwrite` is off.
std::unique_ptr<FolderLock> enter_folder(const std::string& folder, const std::vector<std::string>& known_by,
                                         std::string_view what, bool overwrite);

}  // namespace aha
