// The curves of an evaluation as one figure: most important pixels removed first on the left (lower is
// better), least important first on the right (higher is better). As SVG, and as pixels.
#pragma once

#include <string>

#include "aha/evaluate/evaluate.h"
#include "aha/image/image.h"

namespace aha {

// Each curve carries its method's name (data-name), for pages that let one point at them.
std::string curves_svg(const Evaluation& evaluation, const std::string& explained);
Image curves_image(const Evaluation& evaluation, const std::string& explained, double scale = 2);

// The color of the n-th method, the same in every figure: "#0072b2".
std::string method_color(size_t n);

// Text made safe inside XML and HTML.
std::string escaped(const std::string& text);

}  // namespace aha
