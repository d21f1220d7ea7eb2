// What a reader of a table with learned explainers should know beside its figures.
#pragma once

#include <string>
#include <vector>

#include "aha/evaluate/summary.h"

namespace aha {

// Refinement: where rows differ in T alone, what each T gains over T = 0 in Ins-Del and on how many images it
// loses. Randomization: methods whose maps never look at the target's weights, for which the test is void.
std::vector<std::string> audit_remarks(const Summary& summary);

}  // namespace aha
