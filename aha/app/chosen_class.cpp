#include "aha/app/chosen_class.h"

#include <algorithm>

#include "aha/base/error.h"

namespace aha {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Whether `part` stands in `whole` as a word of its own.
bool has_word(const std::string& whole, const std::string& part) {
  const auto letter = [&](size_t at) {
    return at < whole.size() && std::isalnum(static_cast<unsigned char>(whole[at]));
  };
  for (size_t at = whole.find(part); at != std::string::npos; at = whole.find(part, at + 1))
    if ((at == 0 || !letter(at - 1)) && !letter(at + part.size())) return true;
  return false;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

int class_from_text(const std::string& text, const ClassifierInfo& target) {
  if (const auto index = class_named(text, target)) return *index;
  if (is_number(text))
    throw input_error("--class {}: expected 0..{} for {}", printable(text), target.classes - 1, target.name);
  if (target.class_names.empty())
    throw input_error("--class {}: {} has no class names; expected predicted or 0..{}", printable(text),
                      target.name, target.classes - 1);
  const auto same = classes_named(text, target);
  std::vector<int> beginning, containing, words;
  for (size_t i = 0; i < target.class_names.size(); ++i) {
    const std::string whole = lower(target.class_names[i]), wanted = lower(text);
    const auto index = static_cast<int>(i);
    if (whole.starts_with(wanted)) beginning.push_back(index);
    if (whole.find(wanted) != std::string::npos) containing.push_back(index);
    if (has_word(whole, wanted)) words.push_back(index);
  }
  // "dog" begins dogsled alone, but is a word of other names.
  const bool only_beginning = beginning.size() == 1 && (words.empty() || words == beginning);
  if (same.empty() && only_beginning && !text.empty()) return beginning[0];
  const auto& meant = same.empty() ? containing : same;
  if (meant.empty() || text.empty()) throw unknown_name_error("class", text, target.class_names);
  std::vector<std::string> names;
  for (const int index : meant) names.push_back(fmt::format("{} {}", index, target.class_names[index]));
  throw input_error("--class {}: expected one class by its index or name, found {} {}: {}", printable(text),
                    names.size(), same.empty() ? "that contain it" : "of that name", list_some(names, 40));
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
