// Errors that a person reads.
//
// Wrong input (a file, an option, a shape, an unknown name) is thrown as Error at the public function that
// noticed it; the message says what was expected, what was found and what is available. Only the doors (cli,
// server) turn an Error into an exit code. A mistake of our own is an assertion, and a result that may not
// exist is part of the result.
#pragma once

#include <fmt/format.h>

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace aha {

enum class ErrorKind {
  kInput,     // the call or an input was wrong: exit code 2
  kFailed,    // the call was right, the work failed: exit code 1
  kCanceled,  // the user stopped it: 130 or 143 after a signal, else 1
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return kind_ == ErrorKind::kInput ? 2 : 1; }

 private:
  ErrorKind kind_;
};

// input_error("{}: expected {} classes, found {}", file, expected, found)
template <class... Args>
Error input_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ErrorKind::kInput, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
Error work_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ErrorKind::kFailed, fmt::format(format, std::forward<Args>(args)...));
}

// "unknown method 'gradcm'; did you mean 'gradcam'? available: aha, gradcam, ..."
Error unknown_name_error(std::string_view what, std::string_view found,
                         std::span<const std::string> available);

// "a, b, c and 12 more": at most `most` names.
std::string list_some(std::span<const std::string> names, size_t most = 6);

// Text from outside made safe for one line of a terminal: control characters become \xNN, and at most `most`
// bytes are kept.
std::string printable(std::string_view text, size_t most = 80);

}  // namespace aha
