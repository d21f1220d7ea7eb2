#include "aha/app/chosen_class.h"

#include <algorithm>

#include "aha/base/error.h"

namespace aha {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

int class_from_text(const std::string& text, const ClassifierInfo& target) {
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    const int64_t index = text.size() < 10 ? std::stoll(text) : INT32_MAX;
    if (index >= target.classes)
      throw input_error("--class {}: expected 0..{} for {}", printable(text), target.classes - 1,
                        target.name);
    return static_cast<int>(index);
  }
  for (size_t i = 0; i < target.class_names.size(); ++i) {
    const std::string& whole = target.class_names[i];
    if (lower(whole) == lower(text) || lower(whole.substr(0, whole.find(','))) == lower(text))
      return static_cast<int>(i);
  }
  if (target.class_names.empty())
    throw input_error("--class {}: {} has no class names; expected predicted or 0..{}", printable(text),
                      target.name, target.classes - 1);
  throw unknown_name_error("class", text, target.class_names);
}

ChosenClass class_at(int index, double probability, const ClassifierInfo& target) {
  return {index, index < std::ssize(target.class_names) ? target.class_names[index] : "", probability};
}

ChosenClass chosen_class(const std::string& wanted, const Tensor& probs, const ClassifierInfo& target) {
  const int index = wanted == "predicted" ? static_cast<int>(probs.argmax().item<int64_t>())
                                          : class_from_text(wanted, target);
  return class_at(index, probs[index].item<double>(), target);
}

nlohmann::ordered_json json_from(const ChosenClass& c) {
  return {{"index", c.index}, {"name", c.name}, {"probability", c.probability}};
}

}  // namespace aha
