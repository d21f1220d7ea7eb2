// The 1000 classes of ImageNet-1k in the order that every public classifier of it uses.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace aha {

struct ImageNetClass {
  const char* wnid;  // "n01440764"
  const char* name;  // "tench"
};

std::span<const ImageNetClass> imagenet_classes();
std::vector<std::string> imagenet_class_names();

}  // namespace aha
