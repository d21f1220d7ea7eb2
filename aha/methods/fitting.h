// Which methods a call means: all that fit a target, or those to begin with.
#pragma once

#include <string>
#include <vector>

#include "aha/methods/method.h"

namespace aha {

// Every method of the catalog that this target and explainer have what it needs for, with its default
// options, in the catalog's order. Some take thousands of passes.
std::vector<std::string> fitting_methods(const MethodContext& context);

// What to compare where nobody says it: ours where there is an explainer, the cheap strong ones of this kind
// of network, RISE with few masks, and a control that does not look at the image.
std::vector<std::string> quick_methods(const MethodContext& context);

// What a user can do where there is no explainer for the target, in one line with the commands.
std::string without_an_explainer(const MethodContext& context);

// `asked` with "all" replaced by those of fitting_methods() that are not asked for already; nothing asked for
// = quick_methods().
std::vector<std::string> chosen_methods(const std::vector<std::string>& asked, const MethodContext& context);

}  // namespace aha
