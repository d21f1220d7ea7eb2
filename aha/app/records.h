// What methods and metrics there are, as JSON: for `aha models --json` and for libraries that write docs from
// it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aha/methods/method.h"
#include "aha/metrics/metric.h"

namespace aha {

// An option of a method as it is when nobody sets it.
struct MethodOption {
  std::string name, type, help;
  nlohmann::json start;

  std::string start_text() const { return start.is_string() ? start.get<std::string>() : start.dump(); }
};
// All but the one that is the method's argument.
std::vector<MethodOption> options_of(const MethodRecord& record);

nlohmann::json json_from(const MethodRecord& record);
nlohmann::json json_from(const MetricRecord& record);

}  // namespace aha
