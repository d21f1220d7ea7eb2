// Classes of a target, told by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "aha/networks/classifier.h"

namespace aha {

// The classes of this very name (case and further names after a comma do not matter) or WordNet id of
// ImageNet-1k.
std::vector<int> classes_named(const std::string& text, const ClassifierInfo& target);

// The one class of this index, WordNet id or full name.
std::optional<int> class_named(const std::string& text, const ClassifierInfo& target);

// The target's class of each of these names, which number the labels of `data`; empty where the labels are
// the classes' numbers already: nobody has names, or both have the same. Names that are no class: an input
// error, or, where there are as many as classes, a warning and their order.
//
// Folders of images are numbered in the order of their names: right where each is a class, wrong where some
// are.
std::vector<int> classes_of_labels(const std::vector<std::string>& names, const std::string& data,
                                   const ClassifierInfo& target);

}  // namespace aha
