// All methods by name. `NAME:key=value:key=value` sets a method's options; `blur=SIGMA_PX` smooths the maps
// of any of them.
#pragma once

#include "aha/methods/method.h"

namespace aha {

const std::vector<MethodRecord>& method_catalog();

// Input error for an unknown name or option, and for a method that does not fit the target: it says what is
// missing and which methods fit.
std::unique_ptr<Method> make_method(const std::string& spec, const MethodContext& context);

}  // namespace aha
