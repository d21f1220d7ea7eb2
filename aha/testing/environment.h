// A variable of the environment with another value, as long as the object lives.
#pragma once

#include <cstdlib>
#include <string>

namespace aha::checks {

class Variable {
 public:
  Variable(const char* name, const std::string& value)
      : name_(name), had_(std::getenv(name) != nullptr), old_(had_ ? std::getenv(name) : "") {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { had_ ? ::setenv(name_, old_.c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  bool had_;
  std::string old_;
};

}  // namespace aha::checks
