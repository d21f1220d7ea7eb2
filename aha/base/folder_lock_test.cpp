#include "aha/base/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "aha/base/error.h"
#include "aha/base/files.h"

namespace aha {
namespace {

namespace fs = std::filesystem;

std::string fresh_folder(const char* name) {
  std::string folder = testing::TempDir() + "/" + name;
  fs::remove_all(folder);
  return folder;
}

TEST(FolderLock, TheSecondIsRefusedWithTheFirstOnesProcess) {
  const std::string folder = fresh_folder("aha_lock");
  std::optional<FolderLock> first(std::in_place, folder);
  try {
    const FolderLock second(folder);
    FAIL() << "expected a refusal";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("process " + std::to_string(::getpid())));
    EXPECT_EQ(error.exit_code(), 2);
  }
  first.reset();
  const FolderLock third(folder);
}

TEST(FolderLock, ALockThatAKilledProcessLeftBlocksNobody) {
  const std::string folder = fresh_folder("aha_stale_lock");
  const pid_t child = ::fork();
  if (child == 0) {
    const FolderLock lock(folder);
    ::_exit(0);  // as a kill does: nothing is tidied up
  }
  ASSERT_GT(child, 0);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(fs::exists(folder + "/.lock"));
  const FolderLock lock(folder);
  EXPECT_EQ(read_file(folder + "/.lock"), std::to_string(::getpid()) + "\n");
}

TEST(FolderLock, LeavesNothingWhereNothingWasWritten) {
  const std::string folder = fresh_folder("aha_unused");
  {
    const FolderLock lock(folder + "/a/b/");
    EXPECT_FALSE(holds_files(folder + "/a/b"));
  }
  EXPECT_FALSE(fs::exists(folder));
  {
    const FolderLock lock(folder + "/a/b");
    write_file_atomically(folder + "/a/b/result", "1");
    EXPECT_TRUE(holds_files(folder + "/a/b"));
  }
  EXPECT_EQ(read_file(folder + "/a/b/result"), "1");
  EXPECT_FALSE(fs::exists(folder + "/a/b/.lock"));
}

}  // namespace
}  // namespace aha
