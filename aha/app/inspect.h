// The verb behind `aha inspect`: a weight file described for a person or as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "aha/networks/weight_summary.h"

namespace aha {

nlohmann::json json_from_summary(const WeightSummary& summary);
std::string text_from_summary(const WeightSummary& summary, bool with_tensors);

}  // namespace aha
