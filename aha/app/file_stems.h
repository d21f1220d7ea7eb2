// The names under which the results of images are written.
#pragma once

#include <string>
#include <vector>

namespace aha {

// "STEM" of each image file, with -2, -3, ... where several share one: a result never replaces another.
std::vector<std::string> file_stems(const std::vector<std::string>& images);

}  // namespace aha
