// Who wrote a PNG.
#pragma once

#include <string>

namespace aha {

// Whether a file is a PNG that says it was written here (tEXt chunk, Software = aha).
bool is_png_of_aha(const std::string& path);

}  // namespace aha
