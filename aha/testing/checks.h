// What the tests of many modules share. Knows nothing of torch. (A namespace of its own: in aha::testing it
// would hide gtest's.)
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "aha/base/error.h"

namespace aha::checks {

// The message of the error that the call must throw; the error has to end a program with this exit code (2:
// wrong input, 1: failed work).
inline std::string message_of(const std::function<void()>& call, int exit_code = 2) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), exit_code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// A path under the test's temporary folder where nothing is.
inline std::string fresh_path(const std::string& name) {
  const auto path = std::filesystem::path(::testing::TempDir()) / ("aha_" + name);
  std::filesystem::remove_all(path);
  return path.string();
}

// An empty folder there.
inline std::string fresh_folder(const std::string& name) {
  const std::string folder = fresh_path(name);
  std::filesystem::create_directories(folder);
  return folder;
}

// A file of the real weights and photos, which are not part of the project: under the folder that AHA_SHARED
// names, or ../shared. A test that uses one skips itself where it is absent.
inline std::string shared_file(const std::string& name) {
  const char* folder = std::getenv("AHA_SHARED");
  return (std::filesystem::path(folder ? folder : "../shared") / "data" / name).string();
}

}  // namespace aha::checks
