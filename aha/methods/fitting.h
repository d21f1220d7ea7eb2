// Which methods a call means: all that fit a target, or those to begin with.
#pragma once

#include "aha/methods/method.h"

namespace aha {

// Every method of the catalog that this target and explainer have what it needs for, with its default
// options, in the catalog's order. Some take thousands of passes.
std::vector<std::string> fitting_methods(const MethodContext& context);

// The fitting ones that take a few passes, and a control that does not look at the image.
std::vector<std::string> quick_methods(const MethodContext& context);

// `asked` with "all" replaced by those of fitting_methods() that are not asked for already; nothing asked for
// = quick_methods().
std::vector<std::string> chosen_methods(const std::vector<std::string>& asked, const MethodContext& context);

}  // namespace aha
