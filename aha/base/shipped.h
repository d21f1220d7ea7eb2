// Folders that ship with the program: models, protocols, data, the problems of the benchmark.
//
// Looked for in this order: where an environment variable points; share/aha/NAME beside the program's bin/
// or beside the lib/ of our library; the source tree, upwards from either, so that the tree may be moved; the
// source tree where it was when it was compiled. A witness, a file that such a folder holds, tells it from
// another folder of that name; what the variable names is believed.
#pragma once

#include <string>

namespace aha {

struct ShippedFolder {
  const char* variable;   // "AHA_DATA"
  const char* installed;  // "data": under share/aha/
  const char* in_tree;    // "data": under the root of the tree
  const char* witness;    // "cifar10_sample.png"
};

// Empty where there is none.
std::string find_shipped(const ShippedFolder& folder);

// Input error that lists the places looked at where there is none.
std::string shipped(const ShippedFolder& folder);

}  // namespace aha
