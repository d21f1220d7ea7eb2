#include "aha/networks/class_names.h"

#include <algorithm>

#include "aha/base/error.h"
#include "aha/base/imagenet_classes.h"
#include "aha/base/log.h"

namespace aha {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_index(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::vector<int> classes_named(const std::string& text, const ClassifierInfo& target) {
  if (const auto index = imagenet_class_of(text); index && target.class_names == imagenet_class_names())
    return {*index};
  std::vector<int> same;
  for (size_t i = 0; i < target.class_names.size(); ++i) {
    const std::string whole = lower_case(target.class_names[i]);
    if (whole == lower_case(text) || whole.substr(0, whole.find(',')) == lower_case(text))
      same.push_back(static_cast<int>(i));
  }
  return same;
}

std::optional<int> class_named(const std::string& text, const ClassifierInfo& target) {
  const auto same = classes_named(text, target);
  if (same.size() == 1) return same[0];
  if (is_index(text) && std::stoll(text) < target.classes) return std::stoi(text);
  return std::nullopt;
}

std::vector<int> classes_of_labels(const std::vector<std::string>& names, const std::string& data,
                                   const ClassifierInfo& target) {
  if (names.empty() || target.class_names.empty() || names == target.class_names) return {};
  std::vector<int> classes;
  std::vector<std::string> strange;
  for (const auto& name : names) {
    if (const auto index = class_named(name, target))
      classes.push_back(*index);
    else
      strange.push_back(name);
  }
  if (strange.empty()) return classes;
  if (std::ssize(names) == target.classes) {
    spdlog::warn(
        "{}: {} of {} names are no class of {} ({}): the classes are taken in the order of the names", data,
        strange.size(), names.size(), target.name, list_some(strange, 3));
    return {};
  }
  throw input_error(
      "{}: {} of {} names are no class of {}: {}; expected names, WordNet ids or indices of its "
      "{} classes: {}",
      data, strange.size(), names.size(), target.name, list_some(strange, 3), target.classes,
      list_some(target.class_names, 3));
}

}  // namespace aha
