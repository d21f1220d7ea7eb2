#include "aha/methods/fitting.h"

#include <algorithm>

#include "aha/base/error.h"
#include "aha/methods/catalog.h"

namespace aha {
namespace {

// First ours, then those of one forward and at most one backward pass, the strongest of a kind of network
// first, then one that takes any network as it is, then the control.
constexpr const char* kQuickMethods[] = {"aha",      "chefer",   "legrad",         "gradcam",
                                         "layercam", "gradient", "rise:masks=100", "center"};

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
    if (contains(fitting, std::string(name).substr(0, std::string(name).find(':')))) names.push_back(name);
  return names;
}

std::string without_an_explainer(const MethodContext& context) {
  const std::string& target = context.target.info().name;
  const bool closed = context.target.default_levels().empty();
  std::vector<std::string> others = quick_methods(context);
  std::erase_if(others, [](const auto& name) { return name == "gradient" || name == "center"; });
  return fmt::format(
      "no explainer of {} is bundled; train one: `aha train --target {}{} --data folder:PHOTOS --out "
      "my-explainer`, then --explainer my-explainer; or without training --method {}; or --method optimized, "
      "which searches for minutes",
      target, target, closed ? " --encoder dinov3_vits16:FILE" : "", fmt::join(others, "|"));
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
