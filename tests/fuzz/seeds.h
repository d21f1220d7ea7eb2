// Gives a fuzzer valid files to start from: mutations of them get behind the first checks, which noise hardly
// ever does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "aha/base/files.h"

// From LLVMFuzzerInitialize: unless the call names a corpus, the seeds are written to PROGRAM.corpus, which
// also keeps what is found.
inline void start_from(int* argc, char*** argv, const std::vector<std::string>& seeds) {
  static std::vector<char*> arguments;
  static std::string folder;
  arguments.assign(*argv, *argv + *argc);
  for (int i = 1; i < *argc; ++i)
    if (arguments[i][0] != '-') return;
  folder = std::string(arguments[0]) + ".corpus";
  std::filesystem::create_directories(folder);
  for (size_t i = 0; i < seeds.size(); ++i)
    aha::write_file_atomically(folder + "/seed-" + std::to_string(i), seeds[i]);
  arguments.push_back(folder.data());
  arguments.push_back(nullptr);
  *argv = arguments.data();
  ++*argc;
}
