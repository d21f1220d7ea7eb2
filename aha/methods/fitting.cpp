#include "aha/methods/fitting.h"

#include <algorithm>

#include "aha/methods/catalog.h"

namespace aha {
namespace {

// First ours, then those of one forward and at most one backward pass, then the control.
constexpr const char* kQuickMethods[] = {"aha",     "chefer",   "legrad", "rollout",
                                         "gradcam", "gradient", "center"};

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

std::vector<std::string> fitting_methods(const MethodContext& context) {
  std::vector<std::string> names;
  for (const auto& record : method_catalog())
    if (record.fits(context) && record.argument.empty()) names.push_back(record.name);
  return names;
}

std::vector<std::string> quick_methods(const MethodContext& context) {
  const auto fitting = fitting_methods(context);
  std::vector<std::string> names;
  for (const char* name : kQuickMethods)
    if (contains(fitting, name)) names.push_back(name);
  return names;
}

std::vector<std::string> chosen_methods(const std::vector<std::string>& asked, const MethodContext& context) {
  if (asked.empty()) return quick_methods(context);
  std::vector<std::string> specs;
  for (const auto& spec : asked) {
    if (spec != "all") {
      specs.push_back(spec);
      continue;
    }
    for (const auto& name : fitting_methods(context))
      if (!contains(asked, name) && !contains(specs, name)) specs.push_back(name);
  }
  return specs;
}

}  // namespace aha
