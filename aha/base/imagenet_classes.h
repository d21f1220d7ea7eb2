// The 1000 classes of ImageNet-1k in the order that every public classifier of it uses.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aha {

struct ImageNetClass {
  const char* wnid;  // "n01440764"
  const char* name;  // "tench"
};

std::span<const ImageNetClass> imagenet_classes();
std::vector<std::string> imagenet_class_names();

// The index of a WordNet id; nothing where it is not one of the 1000.
std::optional<int> imagenet_class_of(std::string_view wnid);

}  // namespace aha
