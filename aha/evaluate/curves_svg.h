// The curves of an evaluation as one SVG: most important pixels removed first on the left (lower is better),
// least important first on the right (higher is better).
#pragma once

#include <string>

#include "aha/evaluate/evaluate.h"

namespace aha {

std::string curves_svg(const Evaluation& evaluation, const std::string& explained);

// The color of the n-th method, the same in every figure.
std::string method_color(size_t n);

// Text made safe inside XML and HTML.
std::string escaped(const std::string& text);

}  // namespace aha
