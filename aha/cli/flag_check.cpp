#include "aha/cli/flag_check.h"

#include <algorithm>

#include "aha/base/error.h"
#include "aha/base/nearest_name.h"

namespace aha {
namespace {

const Field* field_of(const Fields& fields, const std::string& name) {
  if (const Field* field = fields.find(name)) return field;
  const Field* turned = name.starts_with("no-") ? fields.find(name.substr(3)) : nullptr;
  return turned && std::holds_alternative<bool*>(turned->slot) ? turned : nullptr;
}

[[noreturn]] void refuse_unknown(const std::string& name, const std::string& command,
                                 const std::map<std::string, const Fields*>& known) {
  std::vector<std::string> names;
  for (const Field& field : known.at(command)->list()) {
    names.push_back("--" + field.name);
    if (std::holds_alternative<bool*>(field.slot)) names.push_back("--no-" + field.name);
  }
  const std::string near = nearest_name("--" + name, names);
  std::string others;
  for (const auto& [other, fields] : known)
    if (field_of(*fields, name)) others += (others.empty() ? "aha " : ", aha ") + other;
  throw input_error("unknown flag --{}; {}{}aha {} --help-all lists its flags", printable(name),
                    near.empty() ? "" : fmt::format("did you mean {}? ", near),
                    near.empty() && !others.empty() ? fmt::format("it is one of {}; ", others) : "", command);
}

}  // namespace

void check_flags(const std::vector<std::string>& words, const std::string& command,
                 const std::map<std::string, const Fields*>& known) {
  static const std::vector<std::string> kOurs = {"config", "help", "help-all", "methods-markdown",
                                                 "api-markdown"};
  std::map<std::string, std::string> values;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return;
    if (!word.starts_with("--")) continue;
    const size_t equal = word.find('=');
    const std::string name = word.substr(2, equal == std::string::npos ? equal : equal - 2);
    const Field* field = field_of(*known.at(command), name);
    const bool ours = std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end();
    if (!field && !ours) refuse_unknown(name, command, known);
    if (field ? std::holds_alternative<bool*>(field->slot) : name != "config") continue;
    const bool behind = equal == std::string::npos && i + 1 < words.size() && !words[i + 1].starts_with("--");
    const std::string value = equal != std::string::npos ? word.substr(equal + 1)
                              : behind                   ? words[i + 1]
                                                         : "";
    if (const auto [first, fresh] = values.emplace(name, value); !fresh)
      throw input_error(
          "--{} is given twice, '{}' and '{}'; expected once{}", name, printable(first->second),
          printable(value),
          field && type_of(*field).ends_with(",...")
              ? fmt::format(", a list is --{} {},{}", name, printable(first->second), printable(value))
              : "");
    if (behind) ++i;
  }
}

}  // namespace aha
