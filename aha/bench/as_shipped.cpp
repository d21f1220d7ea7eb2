#include "aha/bench/as_shipped.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "aha/base/startup.h"

extern char** environ;

namespace aha {
namespace {

std::vector<std::string> shipped_environment() {
  std::vector<std::string> ours = {"AHA_TUNING", "AHA_HAS_SET", "AHA_STARTED_AGAIN"};
  for (const auto& choice : library_choices())
    if (!choice.by_user) ours.push_back(choice.variable);
  std::vector<std::string> kept = {"AHA_TUNING=off"};
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    if (std::find(ours.begin(), ours.end(), name) == ours.end()) kept.push_back(text);
  }
  return kept;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::optional<nlohmann::json> json_as_shipped(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"aha"}, environment = shipped_environment();
  words.insert(words.end(), arguments.begin(), arguments.end());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers_to(words).data(),
                                   pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string output;
  char piece[4096];
  for (ssize_t n; !failed && (n = ::read(ends[0], piece, sizeof(piece))) > 0;)
    output.append(piece, static_cast<size_t>(n));
  ::close(ends[0]);
  int status = 0;
  if (failed || ::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return std::nullopt;
  auto json = nlohmann::json::parse(output, nullptr, false);
  return json.is_discarded() ? std::nullopt : std::optional(std::move(json));
}

}  // namespace aha
